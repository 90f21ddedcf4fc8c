"""Attributes and slots that a program has set on a tensor, as pickles and checkpoints hold them."""

from __future__ import annotations

from typing import Any

from ._backends.hollow import HollowArray, UnmadeArray
from ._tensor import Tensor

_OWN = (object, Tensor)  # whose slots hold the tensor itself


def state_of(tensor: Any) -> Any:
    """The result of its class's `__getstate__`, else its attributes, with slots of subclasses if there are any."""
    kind = type(tensor)
    if getattr(kind, "__getstate__", None) is not getattr(Tensor, "__getstate__", None):
        return tensor.__getstate__()
    slots = {name: getattr(tensor, name) for name in _slots_of(kind) if hasattr(tensor, name)}
    return (tensor.__dict__, slots) if slots else tensor.__dict__


def give_state(tensor: Any, state: Any) -> Any:
    """Set on a tensor what `state_of` returned."""
    kind = type(tensor)
    if getattr(kind, "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        tensor.__setstate__(state)
        return tensor
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if not isinstance(attributes or {}, dict) or not isinstance(slots or {}, dict):
        raise RuntimeError(f"Invalid serialized state: {state}")
    vars(tensor).update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(tensor, name, value)
    return tensor


def _slots_of(kind: type) -> list[str]:
    found: list[str] = []
    for one in kind.__mro__:
        if one in _OWN:
            continue
        slots = vars(one).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def is_wrapper(tensor: Any) -> bool:
    """Whether it has no memory of its own, because its class answers every op."""
    return isinstance(tensor._a, HollowArray) and not isinstance(tensor._a, UnmadeArray)


def wrapper_facts(tensor: Any) -> tuple[Any, ...]:
    """The facts to rebuild such a tensor: class, dtype, size, stride, offset, layout, device, requires_grad."""
    return (type(tensor), tensor.dtype, tuple(tensor._a.shape), tuple(tensor.stride()), tensor.storage_offset(),
            tensor.layout, tensor.device, bool(tensor.requires_grad))


def rebuild_wrapper(cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: int, layout: Any, device: Any,
                    requires_grad: bool) -> Tensor:
    """Such a tensor, without its attributes."""
    made: Tensor = cls._make_wrapper_subclass(cls, size, strides=stride, storage_offset=storage_offset, dtype=dtype,
                                              layout=layout, device=device, requires_grad=requires_grad)
    return made


def rebuild_wrapper_with_state(facts: tuple[Any, ...], state: Any) -> Any:
    """Rebuild a pickled one."""
    return give_state(rebuild_wrapper(*facts), state)
