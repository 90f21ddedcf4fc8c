"""Arithmetic on trees that are stored as a column of parents."""

from __future__ import annotations

import numpy as np


def nearest(parent: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each row, itself or its nearest ancestor that is wanted, or -1."""
    rows = np.arange(len(parent), dtype=parent.dtype)
    if wanted.all():
        return rows
    jump = np.where(wanted, rows, parent)
    while True:  # each round doubles the distance looked at
        further = np.where(jump >= 0, jump[jump], -1)
        if (further == jump).all():
            return jump
        jump = further


def lifted(parent: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Parents when only some rows are kept: the nearest ancestor that is, or -1."""
    if kept.all():
        return parent
    return np.where(parent >= 0, nearest(parent, kept)[parent], -1).astype(parent.dtype)


def subtree_sums(parent: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Own value plus that of all descendants; costs what the rows with a value are deep."""
    total = own.copy()
    rows = np.flatnonzero(own)
    values = own[rows]
    while len(rows):
        rows = parent[rows]
        inside = rows >= 0
        rows, values = rows[inside], values[inside]
        np.add.at(total, rows, values)
    return total


def time_order(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The order by start, longest first; cheap for runs that are sorted already, as the threads of a trace are."""
    order = np.argsort(start, kind="stable")
    starts, ends = start[order], end[order]
    if ((starts[1:] == starts[:-1]) & (ends[1:] > ends[:-1])).any():
        return np.lexsort((-end, start))
    return order
