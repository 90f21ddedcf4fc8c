"""Copying forms of the view ops (`t_copy`): the view, copied."""

from __future__ import annotations

from typing import Any

from ..._backends.flipped import FLIPS
from ..._dispatch.namespace import aten
from ..._dispatch.registry import OPS
from ..._memory_format import contiguous_format
from ..._tensor import Tensor
from . import Kernel

UNSAFE = {"unsafe_split_with_sizes": "split_with_sizes", "unsafe_split.Tensor": "split.Tensor", "detach_copy": "alias",
          "view_copy": "reshape"}


def of_view(key: str) -> Kernel | None:
    """The formula of a copying form; None if the op is not one."""
    name, dot, overload = key.partition(".")
    viewed = UNSAFE.get(key, f"{name.removesuffix('_copy')}{dot}{overload}" if name.endswith("_copy") else "")
    op = OPS.get(viewed)
    if op is None or viewed in FLIPS:  # those views are of the host's memory only
        return None
    view = getattr(aten, f"{op.name}__{op.overload or 'default'}")
    taken = op.schema.arguments

    def run(*arguments: Any) -> Any:
        given = list(zip(taken, arguments))
        return _copied(view(*[value for argument, value in given if not argument.keyword_only],
                            **{argument.name: value for argument, value in given if argument.keyword_only}))

    return run


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return aten.clone(value, memory_format=contiguous_format)
    return tuple(_copied(one) for one in value)
