"""Kernels that fill, copy and convert memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import stored_scalar
from ..._memory_format import contiguous_format, preserve_format
from . import memory, providers
from .memory import copy_, empty_like_in_format, preserving_copy

Array = Any


def convert(a: Array, dtype: np.dtype) -> Array:
    """A copy in another dtype, inside a kernel."""
    return memory.copy_into(np.empty_like(a, dtype, subok=False), a)


@providers.direct("copy_into")
def copy_into(target: Array, source: Array, non_blocking: bool = False) -> Array:
    """`target[...] = source`, broadcast and converted."""
    if source.ndim > target.ndim or any(
        have not in (1, want) for have, want in zip(source.shape[::-1], target.shape[::-1])
    ):
        raise RuntimeError(mismatch(target.shape, source.shape))
    return memory.copy_into(target, source)


def mismatch(target: tuple[int, ...], source: tuple[int, ...]) -> str:
    """PyTorch's message for a source that does not broadcast."""
    if len(source) > len(target):
        return (f"output with shape {list(target)} doesn't match the broadcast shape {list(source)}")
    lead = len(target) - len(source)
    at = max(i for i, have in enumerate(source) if have not in (1, target[lead + i])) + lead
    return (f"The size of tensor a ({target[at]}) must match the size of tensor b ({source[at - lead]}) at "
            f"non-singleton dimension {at}")


def fill(target: Array, value: Any) -> Array:
    """Set every element to a number."""
    if providers.native is None or not providers.native.fill(target, value):
        target[...] = stored_scalar(value, target.dtype)
    return target


def fill_from_array(target: Array, value: Array) -> Array:
    """Set every element to a 0-d array's value."""
    if value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    return memory.copy_into(target, value)


def zero(target: Array) -> Array:
    """Set every element to 0."""
    if providers.native is None or not providers.native.fill(target, 0):
        target[...] = 0
    return target


def clone(a: Array, memory_format: Any = None) -> Array:
    """A copy with the same layout, or in the order of a memory format."""
    if memory_format is None or memory_format is preserve_format:
        return preserving_copy(a)
    if memory_format is contiguous_format:
        return _row_major_copy(a)
    return copy_(empty_like_in_format(a, a.dtype, memory_format), a)


@providers.direct("row_major_copy")
def _row_major_copy(a: Array) -> Array:
    return copy_(empty_like_in_format(a, a.dtype, contiguous_format), a)
