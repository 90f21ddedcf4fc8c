"""Arrays block by block: intermediate results of a kernel with many passes stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np

Array = Any

# 128 KiB of float32: a few such blocks fit the second-level cache, and a call's own cost hardly matters.
BLOCK = 32768
# Above this many rows, spreading in place is faster than copying first; and the smallest buffer that NumPy takes.
LONG_ROW = 192
SMALLEST_BUFFER = 16


def blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Flat views of arrays of one shape, a block at a time; arrays with another memory layout come whole."""
    size = arrays[0].size
    if size <= BLOCK or not all(a.flags.c_contiguous for a in arrays):
        yield arrays
        return
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, size, BLOCK):
        yield tuple(a[start: start + BLOCK] for a in flat)


def like_block(a: Array, *others: Array) -> Array:
    """Memory for an intermediate result of any block of `a`, used together with the others."""
    if a.size <= BLOCK or not (a.flags.c_contiguous and all(other.flags.c_contiguous for other in others)):
        return np.empty_like(a)
    return np.empty(BLOCK, a.dtype)


def fitted(memory: Array, block: Array) -> Array:
    """The part of such memory that a block needs: the last one may be shorter."""
    return memory if memory.shape == block.shape else memory[: block.size]


def parts(count: int, width: int) -> Iterator[slice]:
    """Slices of `count` things of `width` elements each, about a block at a time."""
    step = count if count * width <= 2 * BLOCK else max(1, BLOCK // max(1, width))
    for start in range(0, count, max(1, step)):
        yield slice(start, min(start + step, count))


class SpreadInPlace:
    """Context in which NumPy combines an array with a row or column without first copying that into a buffer.

    NumPy would copy as many rows as its buffer holds, which costs more than the operation itself. With the smallest
    buffer it goes row by row, which is faster for long rows.
    """

    __slots__ = ("before", "wanted")

    def __init__(self, row: int) -> None:
        self.wanted = row >= LONG_ROW

    def __enter__(self) -> None:
        if self.wanted:
            self.before = np.setbufsize(SMALLEST_BUFFER)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self.wanted:
            np.setbufsize(self.before)
