"""In which order PyTorch's loops over several operands walk the dimensions: new results lie in memory in this order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any


def walking_order(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """The dimensions from the outermost to the innermost; `strides` has those of each operand, 0 where it repeats."""
    order = list(range(len(shape) - 1, -1, -1))
    for place in range(1, len(order)):
        moving = place
        for before in range(place - 1, -1, -1):
            wanted = _compared(order[before], order[moving], shape, strides)
            if wanted > 0:
                order[before], order[moving] = order[moving], order[before]
                moving = before
            elif wanted < 0:
                break
    return order[::-1]


def _compared(inner: int, outer: int, shape: Sequence[int], strides: Sequence[Sequence[int]]) -> int:
    """Above 0 if two dimensions are to change places, below 0 if they are right, 0 if no operand tells."""
    for one in strides:
        first, second = one[inner], one[outer]
        if first and second:
            if first != second:
                return 1 if first > second else -1
            if shape[inner] > shape[outer]:
                return 1
    return 0


def laid_out(a: Array, order: Sequence[int]) -> Array:
    """The array, copied unless its dimensions lie in this order without gaps."""
    if a.transpose(order).flags.c_contiguous:
        return a
    made = np.empty([a.shape[dim] for dim in order], a.dtype).transpose(np.argsort(order))
    made[...] = a
    return made
