"""Arithmetic on trees that are stored as a column of parents."""

from __future__ import annotations

import numpy as np

_FEW_LEVELS = 64


def nearest(parent: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each row, itself or its nearest wanted ancestor, or -1."""
    rows = np.arange(len(parent), dtype=parent.dtype)
    others = np.flatnonzero(~wanted)
    if not len(others):
        return rows
    if len(others) < len(rows) // 4:  # few: only these climb, if it is not far
        found = parent[others]
        for _ in range(_FEW_LEVELS):
            over = np.flatnonzero((found >= 0) & ~wanted[found])
            if not len(over):
                rows[others] = found
                return rows
            found[over] = parent[found[over]]
    jump = np.where(wanted, rows, parent)
    while True:  # each round doubles the distance looked at
        further = np.where(jump >= 0, jump[jump], -1)
        if (further == jump).all():
            return jump
        jump = further


def lifted(parent: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Parents when only some rows are kept: the nearest ancestor that is kept, or -1."""
    if kept.all():
        return parent
    return np.where(parent >= 0, nearest(parent, kept)[parent], -1).astype(parent.dtype)


def depths(parent: np.ndarray) -> np.ndarray:
    """The number of ancestors of each row."""
    jump, depth = parent, (parent >= 0).astype(np.int64)
    while (jump >= 0).any():  # each round doubles the distance looked at
        depth = depth + np.where(jump >= 0, depth[jump], 0)
        jump = np.where(jump >= 0, jump[jump], -1)
    return depth


def subtree_sums(parent: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Own value plus that of all descendants."""
    total = own.copy()
    rows = np.flatnonzero(own)
    values = own[rows]
    for _ in range(_FEW_LEVELS):  # rows with a value climb; cheap if they are few and not deep
        rows = parent[rows]
        inside = rows >= 0
        rows, values = rows[inside], values[inside]
        if not len(rows):
            return total
        np.add.at(total, rows, values)
    total = own.copy()
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    begins = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
    for level in range(int(depth.max()), 0, -1):
        rows = order[begins[level]:begins[level + 1]]
        np.add.at(total, parent[rows], total[rows])
    return total


def time_order(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The order by start, longest first; cheap for runs that are already sorted, as a trace's threads are."""
    order = np.argsort(start, kind="stable")
    starts, ends = start[order], end[order]
    if ((starts[1:] == starts[:-1]) & (ends[1:] > ends[:-1])).any():
        return np.lexsort((-end, start))
    return order
