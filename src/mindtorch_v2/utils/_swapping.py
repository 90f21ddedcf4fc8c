"""`torch.utils.swap_tensors`."""

from __future__ import annotations

import weakref
from typing import Any

from .._autograd.graph import leaf_edge
from .._dispatch.dispatch_modes import of_watch, watch
from .._tensor import DISPATCHING, Tensor

__all__ = ["swap_tensors"]

_CONTENTS = ("_a", "_ag", "_edge", "_of", "_rg", "_st")


def _slots(cls: type) -> set[str]:
    """The slots that a class adds to those of a tensor."""
    found = {name for base in cls.__mro__ if base not in Tensor.__mro__ for name in base.__dict__.get("__slots__", ())}
    return found - {"__dict__", "__weakref__"}


def _check(tensor: Tensor, which: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"swap_tensors: {which} should be a tensor, not {type(tensor).__name__}")
    own = None if tensor._ag is None or tensor._ag.accumulator is None else tensor._ag.accumulator[0].reference
    if any(one is not own and not of_watch(one) for one in weakref.getweakrefs(tensor)):
        raise RuntimeError(f"Cannot swap {which} because it has weakref associated with it")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange everything of two tensors: whoever refers to one then has the other."""
    _check(t1, "t1")
    _check(t2, "t2")
    slots = _slots(type(t1))
    if slots != _slots(type(t2)):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")

    def exchange(name: str) -> None:
        first, second = (getattr(one, name, _NOTHING) for one in (t1, t2))
        for one, value in ((t1, second), (t2, first)):
            if value is not _NOTHING:
                setattr(one, name, value)
            elif hasattr(one, name):
                delattr(one, name)

    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in (*_CONTENTS, *sorted(slots)):
        exchange(name)
    if (type(t1) in DISPATCHING) != (type(t2) in DISPATCHING):
        watch(t1 if type(t1) in DISPATCHING else t2)
    for one in (t1, t2):
        if one._ag is not None and one._ag.accumulator is not None:
            old, one._ag.accumulator = one._ag.accumulator[0], None
            leaf_edge(one)[0].hooks, old.hooks = old.hooks, None
            old.reference = _nobody
            old.register_prehook(_refuse)


def _nobody() -> None:
    """The leaf of a node whose tensor was swapped."""


def _refuse(grads: Any) -> None:
    """The error of a graph that was recorded before the swap: its gradient would go to the wrong tensor."""
    raise RuntimeError("Trying to execute AccumulateGrad node that was poisoned by swap_tensors: the graph was "
                       "recorded before its tensor was swapped")


_NOTHING: Any = object()
