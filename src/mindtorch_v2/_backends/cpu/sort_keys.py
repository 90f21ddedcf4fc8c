"""Sorting by keys: the rank of an element's value and, below it, its position, in one 64-bit number.

Plain numbers are what NumPy sorts and partitions fastest, with vector instructions; its stable sort of positions takes
ten times as long. Because the position is part of the key, no two keys are equal, and the order is the stable one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES

Array = Any
# Above this size, making keys is faster.
MANY = 384
SIGN, ALL_BITS = np.array(1 << 31, np.uint32), np.array((1 << 32) - 1, np.uint32)
SIGN_PLACE = np.array(31, np.int32)
NAN_BITS = np.uint32(0x7FC00000)
ZERO = np.array(0, np.float32)


class Keys:
    """The keys of an array along its last dimension, and how to get positions back from them."""

    __slots__ = ("keys", "mask")

    def __init__(self, keys: Array, mask: Any) -> None:
        self.keys, self.mask = keys, mask

    def positions(self, keys: Array) -> Array:
        """The positions that keys stand for."""
        return np.bitwise_and(keys, self.mask).view(np.int64)


def keys_of(a: Array, descending: bool) -> Keys | None:
    """Keys along the last dimension, with NaN as the largest; None for values that leave no free bits."""
    count = a.shape[-1]
    ranks = _float_ranks(a, descending) if a.dtype == np.float32 or a.dtype in HALF_TYPES else _integer_ranks(
        a, descending, count)
    if ranks is None or count > 1 << 31:
        return None
    shift = (count - 1).bit_length() if ranks.dtype == np.uint64 else 32
    keys = ranks.astype(np.uint64, copy=False)
    np.left_shift(keys, np.uint64(shift), keys)
    np.bitwise_or(keys, np.arange(count, dtype=np.uint64), keys)
    return Keys(keys, np.uint64((1 << shift) - 1))


def _float_ranks(a: Array, descending: bool) -> Array:
    """Unsigned 32-bit numbers in the order of the floats; equal for equal ones."""
    # A sum with zero is a copy without negative zeros.
    values = np.add(a.astype(np.float32, copy=False), ZERO)
    values = np.ascontiguousarray(values)
    bits = values.view(np.uint32)
    strange = np.isnan(values)
    if strange.any():
        bits[strange] = NAN_BITS
    # Negative numbers are in reverse order: all their bits are inverted; for others only the sign.
    turned = np.right_shift(values.view(np.int32), SIGN_PLACE).view(np.uint32)
    np.bitwise_or(turned, SIGN, turned)
    np.bitwise_xor(bits, turned, bits)
    return np.bitwise_xor(bits, ALL_BITS, bits) if descending else bits


def _integer_ranks(a: Array, descending: bool, count: int) -> Array | None:
    """Unsigned 64-bit numbers from zero in the order of the integers, if positions fit beside them."""
    if a.dtype.kind not in "biu" or a.dtype == np.uint64:
        return None
    low, high = int(a.min()), int(a.max())
    if (high - low).bit_length() + (count - 1).bit_length() > 64:
        return None
    wide = a.astype(np.int64)
    ranks = np.subtract(np.int64(high), wide, wide) if descending else np.subtract(wide, np.int64(low), wide)
    return np.ascontiguousarray(ranks).view(np.uint64)
