"""What a recording keeps of an op's arguments: of tensors their geometry, of everything else the value."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor


def describe_value(value: Any) -> Any:
    """A tensor as `(shape, dtype, strides in bytes)`, sequences item by item, other values as they are."""
    if isinstance(value, Tensor):
        array = value._a
        return (array.shape, array.dtype, array.strides)
    if isinstance(value, (list, tuple)):
        return tuple([describe_value(v) for v in value])
    return value
