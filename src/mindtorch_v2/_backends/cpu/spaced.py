"""Evenly spaced numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def spaced(made: Array, start: Any, end: Any) -> Array:
    """An array of floats filled with numbers from `start` to `end`, both included, bit by bit PyTorch's."""
    steps = made.size
    if isinstance(start, complex) or isinstance(end, complex):
        made[...] = np.linspace(start, end, steps)
        return made
    real = np.dtype(np.float64 if made.dtype.itemsize >= 8 else np.float32)
    first, last, count = np.array([start, end, steps - 1], real)
    step = (last - first) / count if steps > 1 else real.type(0)
    # PyTorch multiplies and adds without rounding in between, which the next wider type does too.
    wide = np.float64 if real == np.float32 else np.longdouble
    first, last, count, step = wide(first), wide(last), wide(count), wide(step)
    index = np.arange(steps, dtype=wide)
    low = first + step * index
    high = last - step * (count - index) if steps > 1 else low
    # From the left in the first half, from the right in the second, so that both ends are exact.
    made[...] = np.where(np.arange(steps) < steps // 2, low, high)
    return made
