"""Facts that follow from other events of a trace: the step and the Python stack an event belongs to.

A Kineto file states neither; its reader derives both here, and the writer repeats only what deviates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .columns import Kind
from .kineto_words import parse_frame, step_number
from .nesting import enclosing_rows, parents
from .trace import Frame


def steps(kind: np.ndarray, name: np.ndarray, start_ns: np.ndarray, end_ns: np.ndarray,
          names: Sequence[str]) -> np.ndarray:
    """The profiler step of each event by the `ProfilerStep#N` events: N from its start to its end, then N + 1."""
    rows = np.flatnonzero(kind == Kind.STEP)
    numbers = [step_number(names[n]) for n in name[rows].tolist()]
    known = np.array([n is not None and n < 2**31 - 1 for n in numbers], bool)
    if not known.any():
        return np.zeros(len(kind), np.int32)
    rows = rows[known]
    number = np.array([n for n, ok in zip(numbers, known.tolist(), strict=True) if ok], np.int64)
    order = np.lexsort((number, start_ns[rows]))
    rows, number = rows[order], number[order]
    position = np.searchsorted(start_ns[rows], start_ns, "right") - 1
    inside = np.maximum(position, 0)
    over = (position >= 0) & (start_ns > end_ns[rows][inside])
    return (number[inside] + over).astype(np.int32)


def python_calls(events: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The rows that are Python calls, and the row of each one's caller or -1.

    Callers are found among Python calls alone. A scope that opens in one call and closes in another, as
    `record_function` does in `__enter__` and `__exit__`, crosses them both and must not come between.
    """
    rows = np.flatnonzero((events["kind"] == Kind.PYTHON) | (events["kind"] == Kind.MODULE))
    above = parents(events["thread"][rows], events["start_ns"][rows], events["end_ns"][rows])
    return rows, np.where(above >= 0, rows[np.maximum(above, 0)] if len(rows) else -1, -1)


def callers(events: dict[str, np.ndarray]) -> np.ndarray:
    """For each event that is no Python call, the row of the call that it is in with no other event between, or -1."""
    rows, above = python_calls(events)
    result = np.full(len(events["kind"]), -1, np.int64)
    if not len(rows):
        return result
    calls = {key: events[key][rows] for key in ("thread", "start_ns", "end_ns")}
    calls["parent"] = np.where(above >= 0, np.searchsorted(rows, above), -1)
    innermost = enclosing_rows(calls, events["thread"], events["start_ns"])
    result = np.append(rows, -1)[innermost]
    result[rows] = -1
    # A parent in the same call is between; so is nothing if the event outlives the call, as a scope may.
    between = (events["parent"] >= 0) & (result[events["parent"]] == result)
    return np.where(between | (events["end_ns"] > events["end_ns"][result]), -1, result)


def stacks(events: dict[str, np.ndarray], names: Sequence[str]) -> tuple[np.ndarray, list[tuple[Frame, ...]]]:
    """For each event the Python calls that were open when it started, innermost first; for a call, those around it.

    The result points into a table of stacks; -1 stands for no Python call. Rows must be sorted as in a Trace.
    """
    rows, above = python_calls(events)
    if not len(rows):
        return np.full(len(events["kind"]), -1, np.int32), []
    table: list[tuple[Frame, ...]] = []
    frames = {n: parse_frame(names[n]) for n in np.unique(events["name"][rows]).tolist()}
    known: dict[tuple[int, int], int] = {}
    inside = {-1: -1}  # the stack that something inside a call sees
    for row, called, caller in zip(rows.tolist(), events["name"][rows].tolist(), above.tolist(), strict=True):
        key = (called, inside[caller])
        seen = known.get(key)
        if seen is None:
            seen = known[key] = len(table)
            table.append((frames[called], *(table[key[1]] if key[1] >= 0 else ())))
        inside[row] = seen
    calls = {key: events[key][rows] for key in ("thread", "start_ns", "end_ns")}
    calls["parent"] = np.where(above >= 0, np.searchsorted(rows, above), -1)
    innermost = enclosing_rows(calls, events["thread"], events["start_ns"])
    result = np.array([*(inside[row] for row in rows.tolist()), -1], np.int32)[innermost]
    result[rows] = [inside[caller] for caller in above.tolist()]
    return result, table
