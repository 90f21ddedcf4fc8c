"""Arithmetic on unions of intervals: columns of starts and ends in nanoseconds."""

from __future__ import annotations

import numpy as np

Intervals = tuple[np.ndarray, np.ndarray]  # starts and ends; a union is sorted and its intervals do not touch


def union(start: np.ndarray, end: np.ndarray) -> Intervals:
    """What some intervals cover together.

    >>> [column.tolist() for column in union(np.array([0, 5, 2]), np.array([3, 6, 4]))]
    [[0, 5], [4, 6]]
    """
    filled = end > start
    start, end = start[filled], end[filled]
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    opens = np.concatenate(([True], start[1:] > reached[:-1]))
    return start[opens], reached[np.append(np.flatnonzero(opens)[1:] - 1, len(start) - 1)]


def length(intervals: Intervals) -> int:
    """The total length of a union."""
    return int((intervals[1] - intervals[0]).sum())


def covered(intervals: Intervals, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """How much of each window a union covers."""
    first, last = intervals
    if not len(first):
        return np.zeros(len(low), np.int64)
    total = np.concatenate(([0], np.cumsum(last - first)))

    def until(time: np.ndarray) -> np.ndarray:
        begun = np.searchsorted(first, time, "right")
        beyond = np.where(begun > 0, np.maximum(last[begun - 1] - time, 0), 0)
        return total[begun] - beyond

    return until(high) - until(low)


def intersection(one: Intervals, other: Intervals) -> Intervals:
    """What both of two unions cover."""
    if not len(one[0]) or not len(other[0]):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # An interval of `one` meets those of `other` from the first that ends after its start to the last that starts
    # before its end.
    first = np.searchsorted(other[1], one[0], "right")
    behind = np.searchsorted(other[0], one[1], "left")
    count = np.maximum(behind - first, 0)
    mine = np.repeat(np.arange(len(one[0])), count)
    begins = np.concatenate(([0], np.cumsum(count)))[:-1]
    theirs = np.arange(count.sum()) - np.repeat(begins, count) + np.repeat(first, count)
    return np.maximum(one[0][mine], other[0][theirs]), np.minimum(one[1][mine], other[1][theirs])


def gaps(intervals: Intervals, low: int, high: int) -> Intervals:
    """The stretches of a window outside a union."""
    start, end = intervals
    inside = (end > low) & (start < high)
    start, end = np.maximum(start[inside], low), np.minimum(end[inside], high)
    free = np.concatenate(([low], end)), np.concatenate((start, [high]))
    some = free[1] > free[0]
    return free[0][some], free[1][some]
