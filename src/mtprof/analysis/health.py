"""Faults of a trace, and a trace without them.

A reader makes a valid trace from any file: it cuts negative durations and computes parents. So contents that no program
can produce are also searched in the file itself, if it is a Chrome trace.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..builder import put_in_order
from ..schema import DEVICE_KINDS, PYTHON_KINDS, TABLES, Kind
from ..tables.check import problems
from ..tables.links import forward_of
from ..trace import Trace
from .figures import counted


@dataclass(frozen=True)
class Ailment:
    """Something wrong with a trace."""

    kind: str
    text: str
    count: int = 1


def examine(trace: Trace, path: str | None = None) -> list[Ailment]:
    """All faults of a trace and, if given, of the Chrome trace that it was read from."""
    found = [Ailment("rule", text) for text in problems(trace)]
    found += [ailment for look in (_lost, _crossing, _unlaunched, _unpaired, _outside) for ailment in look(trace)]
    if path is not None:
        found += _in_file(path)
    return found


def _lost(trace: Trace) -> Iterator[Ailment]:
    if trace.dropped:
        yield Ailment("lost events", f"{counted(trace.dropped, 'event')} dropped while recording (max_events)",
                      trace.dropped)


def crossing_rows(trace: Trace) -> np.ndarray:
    """Host events that start inside an event of their kind of tree and end after it."""
    events = trace.events
    python = np.isin(events["kind"], PYTHON_KINDS)
    found = []
    for tree in (~python, python):
        rows = np.flatnonzero(tree & (events["device"] == 0))
        if not len(rows):
            continue
        start, end, thread = events["start_ns"][rows], events["end_ns"][rows], events["thread"][rows]
        for number in np.unique(thread).tolist():
            # If roots of a thread overlap, the later one crosses an earlier one: inside it, it would not be a root.
            top = np.flatnonzero((events["parent"][rows] < 0) & (thread == number))
            late = start[top][1:] < np.maximum.accumulate(end[top])[:-1]
            found.append(rows[top[1:][late]])
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _crossing(trace: Trace) -> Iterator[Ailment]:
    rows = crossing_rows(trace)
    if len(rows):
        name = trace.names[trace.events["name"][rows[0]]]
        yield Ailment("nesting",
                      f"{counted(len(rows), 'event')} starting inside an event of the same thread and ending after it; "
                      f"the first is {name!r}", len(rows))


def _unlaunched(trace: Trace) -> Iterator[Ailment]:
    events = trace.events
    work = np.flatnonzero(np.isin(events["kind"], DEVICE_KINDS) & (events["device"] != 0))
    if not len(work):
        return
    hosts = events["correlation"][(events["device"] == 0) & (events["correlation"] != 0)]
    alone = work[~np.isin(events["correlation"][work], hosts)]
    if len(alone):
        yield Ailment("unbalanced flow",
                      f"{len(alone):,} of {len(work):,} pieces of device work have no host call "
                      "that launched them", len(alone))
    early = _before_launch(trace, work)
    if early:
        yield Ailment("clocks", f"{early:,} pieces of device work start before the call that launched them", early)


def _before_launch(trace: Trace, work: np.ndarray) -> int:
    events = trace.events
    launches = np.flatnonzero((events["kind"] == Kind.LAUNCH) & (events["correlation"] != 0))
    if not len(launches):
        return 0
    keys, first = np.unique(events["correlation"][launches], return_index=True)
    at = np.minimum(np.searchsorted(keys, events["correlation"][work]), len(keys) - 1)
    linked = keys[at] == events["correlation"][work]
    return int((linked & (events["start_ns"][work] < events["start_ns"][launches[first[at]]])).sum())


def _unpaired(trace: Trace) -> Iterator[Ailment]:
    events = trace.events
    backward = np.flatnonzero((events["kind"] == Kind.BACKWARD) & (events["sequence"] >= 0))
    alone = backward[forward_of(trace)[backward] < 0] if len(backward) else backward
    if len(alone):
        yield Ailment("unbalanced flow",
                      f"{len(alone):,} of {len(backward):,} backward events have no forward op in the "
                      "trace", len(alone))


def _outside(trace: Trace) -> Iterator[Ailment]:
    if not len(trace):
        yield Ailment("empty", "there are no events")
        return
    events = trace.events
    low = int(events["start_ns"].min())
    if low < trace.start_ns or int(events["end_ns"].max()) > trace.end_ns:
        outside = int(((events["start_ns"] < trace.start_ns) | (events["end_ns"] > trace.end_ns)).sum())
        yield Ailment("times", f"{counted(outside, 'event')} outside of the recording's own start and end", outside)
    if low + trace.epoch_ns < 0:
        negative = int((events["start_ns"] + trace.epoch_ns < 0).sum())
        yield Ailment("times", f"{counted(negative, 'event')} with negative times")


def _in_file(path: str) -> list[Ailment]:
    """Faults of a Chrome trace that reading hides."""
    import orjson

    with open(path, "rb") as file:
        content = file.read()
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        if not content.lstrip().startswith((b"{", b"[")):
            return []
        document: Any = orjson.loads(content)
    except (orjson.JSONDecodeError, OSError, EOFError):
        return []  # the reader has read what it could, and has warned
    events = document.get("traceEvents", []) if isinstance(document, dict) else []
    negative = sum(isinstance(e.get("dur"), (int, float)) and e["dur"] < 0 for e in events if isinstance(e, dict))
    before = sum(e.get("ph") == "X" and isinstance(e.get("ts"), (int, float)) and e["ts"] < 0
                 for e in events if isinstance(e, dict))
    starts, ends = ({(e.get("cat"), e.get("id")) for e in events if isinstance(e, dict) and e.get("ph") == phase}
                    for phase in ("s", "f"))
    found = []
    if negative:
        found.append(Ailment("negative times", f"{counted(negative, 'event')} with a negative duration, read as 0",
                             negative))
    if before:
        found.append(Ailment("negative times", f"{counted(before, 'event')} with a negative timestamp", before))
    if starts ^ ends:
        found.append(Ailment("unbalanced flow",
                             f"{len(starts - ends):,} arrows begin without an end, {len(ends - starts):,} "
                             "end without a beginning", len(starts ^ ends)))
    return found


def repaired(trace: Trace) -> tuple[Trace, list[str]]:
    """A trace that keeps all rules, and a list of the changes, in words."""
    done = []
    events = {name: column.copy() for name, column in trace.events.items()}
    late = events["end_ns"] < events["start_ns"]
    if late.any():
        events["end_ns"] = np.maximum(events["end_ns"], events["start_ns"])
        done.append(f"{int(late.sum()):,} events that ended before they started now take no time")
    tables = {**{name: dict(table) for name, table in trace.tables.items()}, "events": events}
    mended = put_in_order(replace(trace, tables={name: table for name, table in tables.items() if name in TABLES}))
    rows = crossing_rows(mended)
    if len(rows):
        mended = _cut(mended, rows)
        done.append(f"{len(rows):,} events that crossed another one now end with it")
    low = min(mended.start_ns, int(mended.events["start_ns"].min(initial=mended.start_ns)))
    high = max(mended.end_ns, int(mended.events["end_ns"].max(initial=mended.end_ns)))
    if (low, high) != (trace.start_ns, trace.end_ns):
        mended = replace(mended, start_ns=low, end_ns=high)
        done.append("the recording now begins with its first event and ends with its last")
    if mended.epoch_ns + low < 0:
        mended = replace(mended, epoch_ns=-low)
        done.append("times now count from the first event, because they were before 1970")
    return mended, done or ["nothing needed a change"]


def _cut(trace: Trace, rows: np.ndarray) -> Trace:
    """The trace with events that crossed the root before them now ending with that root."""
    events = {name: column.copy() for name, column in trace.events.items()}
    top = np.flatnonzero((events["parent"] < 0) & (events["device"] == 0))
    python = np.isin(events["kind"], PYTHON_KINDS)
    for row in rows.tolist():
        same = top[(events["thread"][top] == events["thread"][row]) & (python[top] == python[row]) & (top < row)]
        around = same[(events["start_ns"][same] <= events["start_ns"][row])
                      & (events["end_ns"][same] > events["start_ns"][row])]
        if len(around):
            events["end_ns"][row] = min(int(events["end_ns"][row]), int(events["end_ns"][around].min()))
    return put_in_order(trace.with_tables(events=events))
