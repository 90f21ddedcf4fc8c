"""Sums of adjacent rows."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

# If a stretch is this many times longer than the mean, rows are narrower or arrays smaller than this, or there are
# fewer stretches, NumPy by itself is faster.
UNEVEN, NARROW, SMALL, FEW = 16, 9, 8192, 64


def sum_stretches(rows: Array, starts: Array) -> Array:
    """`np.add.reduceat(rows, starts, 0)`, for starts that all differ."""
    if rows.ndim < 2 or rows.size < SMALL or rows[0].size < NARROW or len(starts) < FEW:
        return np.add.reduceat(rows, starts, 0)
    counts = np.diff(np.append(starts, len(rows)))
    if counts.max() > UNEVEN * counts.mean() + FEW:
        return np.add.reduceat(rows, starts, 0)
    # One row of every stretch at once, the longest stretches first: additions of whole arrays.
    order = np.argsort(-counts, kind="stable")
    lengths, begins = -counts[order], starts[order]
    total = np.take(rows, begins, 0)
    for k in range(1, -int(lengths[0])):
        some = begins[:np.searchsorted(lengths, -k)] + k
        total[:len(some)] += np.take(rows, some, 0)
    made = np.empty_like(total)
    made[order] = total
    return made
