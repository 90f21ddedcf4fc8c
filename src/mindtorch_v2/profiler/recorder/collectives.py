"""Communication between ranks as events: `record_param_comms`, with what was moved, by which group, for how long.

What blocks its caller is an event of the calling thread. What was asynchronous gets a lane of its own; since several
may be on their way at once, each begins there when the one before has ended.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mtprof.builder import TraceBuilder
from mtprof.schema import Kind
from mtprof.trace import ThreadInfo

__all__ = ["NOTES", "Note", "add_collectives"]

_KEPT = 1_000_000  # the oldest go first: recordings that still want them are long over
_LANE = "MPI communication"


class Note(NamedTuple):
    """One collective or message that is over."""

    start_ns: int
    end_ns: int
    ident: int         # of the calling thread
    is_async: bool
    operation: str
    dtype: str
    in_elements: int
    out_elements: int
    group: str
    group_description: str
    group_size: int
    ranks: str
    rank: int
    source: int
    target: int
    number: int


NOTES: deque[Note] = deque(maxlen=_KEPT)
_NAMES = ("operation", "dtype", "group", "group_description", "ranks")
_NUMBERS = ("in_elements", "out_elements", "group_size", "rank", "source", "target", "number")


def add_collectives(build: TraceBuilder, start_ns: int, end_ns: int, steps_ns: np.ndarray,
                    threads: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    """Add what was noted during a recording."""
    notes = [note for note in tuple(NOTES) if note.start_ns >= start_ns and note.end_ns <= end_ns]
    if not notes:
        return
    start, end, ident = (np.array([note[field] for note in notes], np.int64) for field in range(3))
    is_async = np.array([note.is_async for note in notes])
    thread = threads(ident, start)
    order = np.flatnonzero(is_async)[np.argsort(end[is_async], kind="stable")]
    if len(order):
        start[order[1:]] = np.maximum(start[order[1:]], end[order[:-1]])
        pid = os.getpid()
        thread[order] = build.thread(ThreadInfo(pid, _lane_number(build, pid), _LANE))
    first = build.count("events")
    build.add_columns("events", {
        "name": np.full(len(notes), build.name("record_param_comms"), np.int32),
        "kind": np.full(len(notes), int(Kind.OP), np.uint8), "start_ns": start, "end_ns": end, "thread": thread,
        "step": np.searchsorted(steps_ns, start, "right").astype(np.int32)})
    columns: dict[str, Any] = {"row": np.arange(first, first + len(notes), dtype=np.int32)}
    for name in _NAMES:
        columns[name] = np.array([build.name(getattr(note, name)) for note in notes], np.int32)
    for name in _NUMBERS:
        columns[name] = np.array([getattr(note, name) for note in notes], np.int64)
    build.add_columns("collectives", columns)


def _lane_number(build: TraceBuilder, pid: int) -> int:
    """A thread id that no thread of the process has here."""
    taken = {thread.tid for thread in build.threads if thread.pid == pid}
    return next(number for number in range(900_000_000, 2**31) if number not in taken)
