"""Kernels that fill, copy and convert memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import scalar_array
from ..._dtype import FROM_NUMPY
from ..._memory_format import CHANNELS_LAST_ORDER, contiguous_format

Array = Any


def convert(a: Array, to: np.dtype) -> Array:
    """A copy in another dtype. Complex loses its imaginary part, floats truncate, as a C cast does."""
    if a.dtype.kind == "c" and to.kind != "c":
        a = a.real
    if to.kind in "iu" and FROM_NUMPY[a.dtype].is_floating_point:
        if to.itemsize < 8:
            # Through int64: NumPy's direct cast of out-of-range values depends on the machine.
            return a.astype(np.int64).astype(to)
        return a.astype(to)
    return a.astype(to, copy=True)


def copy_into(target: Array, source: Array, non_blocking: bool = False) -> Array:
    """`target[...] = source`, broadcast and converted."""
    if source.dtype.kind == "c" and target.dtype.kind != "c":
        source = source.real
    if source.ndim > target.ndim or any(
        have not in (1, want) for have, want in zip(source.shape[::-1], target.shape[::-1])
    ):
        raise RuntimeError(mismatch(target.shape, source.shape))
    np.copyto(target, source, casting="unsafe")
    return target


def mismatch(target: tuple[int, ...], source: tuple[int, ...]) -> str:
    """PyTorch's message for a source that does not broadcast."""
    if len(source) > len(target):
        return (f"output with shape {list(target)} doesn't match the broadcast shape {list(source)}")
    lead = len(target) - len(source)
    at = max(i for i, have in enumerate(source) if have not in (1, target[lead + i])) + lead
    return (f"The size of tensor a ({target[at]}) must match the size of tensor b ({source[at - lead]}) at "
            f"non-singleton dimension {at}")


def fill(target: Array, value: Any) -> Array:
    """Every element set to a number."""
    target[...] = scalar_array(value, target.dtype)
    return target


def fill_from_array(target: Array, value: Array) -> Array:
    """Every element set to a 0-d array's value."""
    if value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    target[...] = value.astype(target.dtype)
    return target


def zero(target: Array) -> Array:
    """Every element set to 0."""
    target[...] = 0
    return target


def clone(a: Array, memory_format: Any = None) -> Array:
    """A copy with the same layout, or in the order a memory format asks for."""
    order = CHANNELS_LAST_ORDER.get(memory_format)
    if order is not None:
        if a.ndim != len(order):
            raise RuntimeError(f"required rank {len(order)} tensor to use {memory_format.name} format")
        return a.transpose(order).copy("C").transpose(np.argsort(order))
    return a.copy("C" if memory_format is contiguous_format else "K")
