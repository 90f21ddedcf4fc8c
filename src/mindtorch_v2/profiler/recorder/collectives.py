"""Communication between ranks as events: `record_param_comms`, with its data, group and duration.

A blocking operation is an event of the calling thread. Asynchronous ones get lanes of their own, one lane for each that
runs at the same time. A thread's wait for one is an event too.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mtprof.builder import TraceBuilder
from mtprof.schema import Kind
from mtprof.trace import ThreadInfo

if TYPE_CHECKING:
    from .recorder import Recorder

__all__ = ["NOTES", "WAITS", "Note", "Wait", "add_collectives", "rank_metadata"]

_KEPT = 1_000_000  # the oldest go first: recordings that need them have long ended
_LANE = "MPI communication"
_FIRST_LANE = 900_000_000  # thread ids that no thread has


class Note(NamedTuple):
    """One collective or message that has ended."""

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
    serial: int        # of the note in this process, from 1


class Wait(NamedTuple):
    """A thread waited for an asynchronous collective or message."""

    start_ns: int
    end_ns: int
    ident: int
    awaited: int       # the note's serial number
    serial: int        # of the wait in this process, from 1; waits are noted when they end


NOTES: deque[Note] = deque(maxlen=_KEPT)
WAITS: deque[Wait] = deque(maxlen=_KEPT)
_NAMES = ("operation", "dtype", "group", "group_description", "ranks")
_NUMBERS = ("in_elements", "out_elements", "group_size", "rank", "source", "target", "number")


def rank_metadata() -> dict[str, Any]:
    """The facts about the ranks in a trace's metadata; empty without groups."""
    lifecycle = sys.modules.get("mindtorch_v2.distributed._lifecycle")
    return {} if lifecycle is None else lifecycle.trace_metadata()


def add_collectives(build: TraceBuilder, recorder: Recorder, steps_ns: np.ndarray,
                    threads: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    """Add what was noted during a recording, without the notes of an earlier part of it."""
    wait_rows = _add_waits(build, recorder, steps_ns, threads)
    notes = []
    for note in tuple(NOTES):
        if note.serial <= recorder.notes_taken or note.start_ns < recorder.start_ns:
            continue
        if note.end_ns > recorder.end_ns:
            break  # it and later notes belong to the next part
        notes.append(note)
    if not notes:
        return
    recorder.notes_taken = notes[-1].serial
    start, end, ident = (np.array([note[field] for note in notes], np.int64) for field in range(3))
    thread = threads(ident, start)
    beside = np.flatnonzero([note.is_async for note in notes])
    beside = beside[np.argsort(start[beside], kind="stable")]
    for row, lane in zip(beside.tolist(), _lanes(start[beside], end[beside])):
        name = _LANE if lane == 0 else f"{_LANE} {lane + 1}"
        thread[row] = build.thread(ThreadInfo(os.getpid(), _FIRST_LANE + lane, name))
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
    columns["wait"] = np.array([wait_rows.get(note.serial, -1) for note in notes], np.int32)
    build.add_columns("collectives", columns)


def _add_waits(build: TraceBuilder, recorder: Recorder, steps_ns: np.ndarray,
               threads: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> dict[int, int]:
    """Add the waits of a recording; returns the row of the first one for each note, by its serial number."""
    waits = [wait for wait in tuple(WAITS) if wait.serial > recorder.waits_taken
             and wait.start_ns >= recorder.start_ns and wait.end_ns <= recorder.end_ns]
    if not waits:
        return {}
    recorder.waits_taken = waits[-1].serial
    start, end, ident = (np.array([wait[field] for wait in waits], np.int64) for field in range(3))
    first = build.count("events")
    build.add_columns("events", {
        "name": np.full(len(waits), build.name("mpi:wait"), np.int32),
        "kind": np.full(len(waits), int(Kind.SCOPE), np.uint8), "start_ns": start, "end_ns": end,
        "thread": threads(ident, start), "step": np.searchsorted(steps_ns, start, "right").astype(np.int32)})
    rows: dict[int, int] = {}
    for row, wait in enumerate(waits, first):
        rows.setdefault(wait.awaited, row)
    return rows


def _lanes(start: np.ndarray, end: np.ndarray) -> list[int]:
    """For each interval, by start, the first lane that is free then."""
    free: list[int] = []  # when each lane is free
    result = []
    for low, high in zip(start.tolist(), end.tolist()):
        lane = next((number for number, time in enumerate(free) if time <= low), len(free))
        free[lane:lane + 1] = [high]
        result.append(lane)
    return result
