"""How elements lie in memory: strides in bytes, computed from shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._shape import contiguous_strides

Shape = tuple[int, ...]


def row_major(shape: Sequence[int], itemsize: int) -> Shape:
    """Strides without gaps, the last dimension innermost."""
    return tuple([s * itemsize for s in contiguous_strides(shape)])


def is_row_major(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Whether elements lie without gaps, the last dimension innermost."""
    if 0 in shape:
        return True
    for extent, step in zip(reversed(shape), reversed(strides)):
        if extent != 1:
            if step != itemsize:
                return False
            itemsize *= extent
    return True


def is_dense(array: Any) -> bool:
    """Whether the elements fill their memory without holes or overlap, in some order of dimensions."""
    if array.flags.forc:
        return True
    expected = array.dtype.itemsize
    for step_bytes, extent in sorted((s, n) for s, n in zip(array.strides, array.shape) if n != 1):
        if step_bytes != expected:
            return False
        expected *= extent
    return True


def shows_twice(array: Any) -> bool:
    """Whether an element is at several positions of an array, as after `expand`."""
    return 0 in array.strides and 0 not in array.shape and any(
        s == 0 and n > 1 for s, n in zip(array.strides, array.shape))


def span_bytes(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    """The bytes from the first element to the end of the last."""
    if 0 in shape:
        return 0
    return itemsize + sum([(extent - 1) * step for extent, step in zip(shape, strides)])


def ordered_strides(shape: Sequence[int], order: Sequence[int], itemsize: int) -> Shape:
    """Strides without gaps for dimensions in an order, from the outermost to the innermost."""
    strides = [0] * len(shape)
    for dim in reversed(order):
        strides[dim] = itemsize
        itemsize *= max(shape[dim], 1)
    return tuple(strides)


def memory_order(a: Any) -> list[int]:
    """Dimensions from the outermost to the innermost in memory; one that repeats elements (stride 0) keeps its place.
    """
    order = list(range(len(a.shape) - 1, -1, -1))  # innermost first
    for last in range(1, len(a.shape)):
        moving = last
        for at in range(last - 1, -1, -1):
            here, there = a.strides[order[at]], a.strides[order[moving]]
            if not here or not there:
                continue
            if here < there or (here == there and a.shape[order[at]] <= a.shape[order[moving]]):
                break
            order[at], order[moving] = order[moving], order[at]
            moving = at
    return order[::-1]


def dense_strides(array: Any, itemsize: int) -> Shape:
    """Strides of a copy without gaps, for elements of another size, dimensions in the order that they have in memory.
    """
    if is_dense(array):
        own = array.dtype.itemsize
        return tuple([s // own * itemsize for s in array.strides])
    return ordered_strides(array.shape, memory_order(array), itemsize)
