"""Choosing between two arrays element by element, without branches.

NumPy's loops branch for every element, which costs several times as much as the work if the mask follows no pattern. On
the bits, `b ^ ((a ^ b) & mask)` is `a` where the mask is all ones and `b` where it is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
BITS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}
# Above this size, a mask of whole words is faster; and the number of elements at a time.
MANY, BLOCK = 4096, 16384


def _fits(condition: Array, *arrays: Array) -> bool:
    """Whether all have the same memory layout, or are one number."""
    return all(not a.ndim or (a.flags.c_contiguous and a.shape == condition.shape) for a in arrays)


def select(condition: Array, a: Array, b: Array) -> Array:
    """`np.where(condition, a, b)` of arrays of one dtype."""
    kind = BITS.get(a.dtype.itemsize)
    if condition.size < MANY or kind is None or not condition.flags.c_contiguous or not _fits(condition, a, b):
        return np.where(condition, a, b)
    made = np.empty(condition.shape, a.dtype)
    _choose(condition.reshape(-1), a.reshape(-1).view(kind), b.reshape(-1).view(kind), made.reshape(-1).view(kind))
    return made


def fill_where(target: Array, condition: Array, value: Array) -> None:
    """`np.copyto(target, value, where=condition)` of an array and a value of its dtype."""
    kind = BITS.get(target.dtype.itemsize)
    if (condition.size < MANY or kind is None or value.dtype != target.dtype or not condition.flags.c_contiguous
            or not target.ndim or not _fits(condition, target, value)):
        np.copyto(target, value, where=condition)
        return
    flat = target.reshape(-1).view(kind)
    _choose(condition.reshape(-1), value.reshape(-1).view(kind), flat, flat)


def _choose(condition: Array, a: Array, b: Array, made: Array) -> None:
    """Bits of `a` or of `b`, which may be where the result goes; either may be one number."""
    masks, mixed = np.empty((2, min(BLOCK, made.size)), made.dtype)
    marks = condition.view(np.int8)
    for start in range(0, made.size, BLOCK):
        part = slice(start, start + BLOCK)
        out = made[part]
        mask, mix = masks[: out.size], mixed[: out.size]
        first, second = (bits if bits.size == 1 else bits[part] for bits in (a, b))
        mask[...] = marks[part]
        np.negative(mask, mask)
        np.bitwise_xor(first, second, mix)
        np.bitwise_and(mix, mask, mix)
        np.bitwise_xor(mix, second, out)
