"""Facts that follow from other events of a trace: the step and the Python stack an event belongs to.

A Kineto file states neither; its reader derives both here, and the writer repeats only what deviates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .columns import Kind
from .kineto_words import parse_frame, step_number
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


def stacks(kind: np.ndarray, name: np.ndarray, parent: np.ndarray,
           names: Sequence[str]) -> tuple[np.ndarray, list[tuple[Frame, ...]]]:
    """For each event that is no Python call, the Python calls around it, innermost first, as indices into a table.

    Rows must be sorted with parents before children. -1 stands for no Python call around the event.
    """
    python = (kind == Kind.PYTHON) | (kind == Kind.MODULE)
    result = np.full(len(kind), -1, np.int32)
    if not python.any():
        return result, []
    table: list[tuple[Frame, ...]] = []
    frames = {n: parse_frame(names[n]) for n in np.unique(name[python]).tolist()}
    known: dict[tuple[int, int], int] = {}
    around: list[int] = []  # the stack that children of each row see
    for is_python, called, above in zip(python.tolist(), name.tolist(), parent.tolist(), strict=True):
        seen = around[above] if above >= 0 else -1
        if is_python:
            key = (called, seen)
            seen = known.get(key, -2)
            if seen == -2:
                seen = known[key] = len(table)
                table.append((frames[called], *(table[key[1]] if key[1] >= 0 else ())))
        around.append(seen)
    return np.where(python, np.int32(-1), np.array(around, np.int32)), table
