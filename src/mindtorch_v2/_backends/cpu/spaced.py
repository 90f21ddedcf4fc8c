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


def pixel_positions(sizes: tuple[int, ...], align_corners: bool, dtype: np.dtype) -> Array:
    """Positions of all pixels in [-1, 1], the last dimension first, then 1."""
    axes = []
    for n in sizes:
        line = spaced(np.empty(n, dtype), -1, 1) if n > 1 else np.zeros(n, dtype)
        axes.append(line if align_corners else line * dtype.type(n - 1) / dtype.type(n))
    grid = np.meshgrid(*axes, indexing="ij")
    return np.stack([*grid[::-1], np.ones_like(grid[0])], -1).reshape(-1, len(sizes) + 1)
