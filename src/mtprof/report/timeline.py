"""The data of the timeline: lanes of threads and streams, and their events; the longest if there are too many."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis import Analysis
from ..devices import device_name
from ..schema import DEVICE_KINDS, Kind
from ..tables.distinct import distinct
from .columns import packed
from .phases import PHASES, phases

MOST_EVENTS = 200_000
MOST_STEPS = 20_000


def timeline_of(analysis: Analysis, most_events: int | None = None) -> dict[str, Any]:
    """Lanes and columns of events. Times are nanoseconds from the first moment shown."""
    trace = analysis.trace
    events = trace.events
    most = MOST_EVENTS if most_events is None else most_events
    # Steps begin and end anywhere among Python calls; they have a lane of their own, stated or found.
    rows = np.flatnonzero((events["kind"] != Kind.STEP) | (events["device"] != 0))
    total = len(rows)
    duration = trace.duration_ns
    if len(rows) > most:
        rows = rows[_longest(events["thread"][rows], duration[rows], most)]
    start = events["start_ns"][rows]
    origin = int(min(start.min(initial=trace.start_ns), trace.start_ns))
    lanes, lane = _lanes(analysis, rows)
    depth = _depths(start, events["end_ns"][rows], lane)
    name, names = np.unique(events["name"][rows], return_inverse=True)
    order = np.lexsort((depth, start, lane))
    columns = {"start": start - origin, "duration": duration[rows], "lane": lane, "depth": depth,
               "name": names.reshape(-1), "phase": phases(trace)[rows], "row": rows}
    launched = _launched(analysis, rows, order)
    return {
        "origin": origin - trace.start_ns, "span": int(max(trace.end_ns, int((start + duration[rows]).max(initial=0)))
                                                       - origin),
        "shown": len(rows), "total": total, "lanes": lanes, "steps": _steps(analysis, origin), "phases": list(PHASES),
        "names": [trace.names[number] for number in name.tolist()],
        "columns": {key: packed(value[order], delta=key in ("start", "row")) for key, value in columns.items()},
        "launched": {key: packed(value) for key, value in launched.items()},
    }


def _longest(thread: np.ndarray, duration: np.ndarray, most: int) -> np.ndarray:
    """The longest events of each thread and stream, the same share of each as of all.

    The events around an event are at least as long, so no parent is missing.
    """
    order = np.lexsort((-duration, thread))
    first = np.searchsorted(thread[order], thread[order])  # where the event's thread begins
    count = np.bincount(thread)[thread[order]]
    kept = np.arange(len(order)) - first < np.maximum(count * most // len(order), 1)
    return np.sort(order[kept])[:most]


def _depths(start: np.ndarray, end: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """The depth of each drawn event in its lane: Python calls, scopes and ops share the lane of their thread.

    Calls and scopes may cross, because a scope may end after the function that began it. An event that begins while
    another runs is drawn below it, whichever ends first.
    """
    order = np.lexsort((-end, start, lane))
    depth = np.zeros(len(order), np.int64)
    around: list[tuple[int, int]] = []  # end and depth of events that still run
    before = -1
    for place, begins, ends, where in zip(order.tolist(), start[order].tolist(), end[order].tolist(),
                                          lane[order].tolist()):
        if where != before:
            around.clear()
            before = where
        while around and around[-1][0] <= begins:
            around.pop()
        depth[place] = here = around[-1][1] + 1 if around else 0
        around.append((ends, here))
    return np.minimum(depth, 255)


def _lanes(analysis: Analysis, rows: np.ndarray) -> tuple[list[dict[str, Any]], np.ndarray]:
    trace = analysis.trace
    events = trace.events
    thread = events["thread"][rows].astype(np.int64)
    device = events["device"][rows].astype(np.int64) * np.isin(events["kind"][rows], DEVICE_KINDS)
    index = events["device_index"][rows].astype(np.int64)
    keys = np.stack([device, np.where(device > 0, index, -1), thread])
    lane, first = distinct(keys)
    lanes = []
    for kind, number, place in keys[:, first].T.tolist():
        info = trace.threads[place]
        if kind:
            label, group = f"stream {info.tid}", device_name(kind, number)
        else:
            label, group = info.name or f"thread {info.tid}", info.process_name or f"process {info.pid}"
        lanes.append({"label": label, "group": group, "device": bool(kind), "main": place == analysis.steps.thread})
    return lanes, lane


def _steps(analysis: Analysis, origin: int) -> dict[str, Any]:
    """Number, start and length of each step, if there are any."""
    steps = analysis.steps
    kept = slice(0, MOST_STEPS if steps.known else 0)
    return {"number": steps.number[kept].tolist(), "start": (steps.start_ns[kept] - origin).tolist(),
            "duration": steps.duration_ns[kept].tolist()}


def _launched(analysis: Analysis, rows: np.ndarray, order: np.ndarray) -> dict[str, np.ndarray]:
    """Pairs of host and device events with one correlation number, as places among the drawn events."""
    events = analysis.trace.events
    correlation = events["correlation"][rows][order]
    on_device = np.isin(events["kind"][rows][order], DEVICE_KINDS)
    host = {int(number): place for place, number in zip(np.flatnonzero((correlation != 0) & ~on_device).tolist(),
                                                        correlation[(correlation != 0) & ~on_device].tolist())}
    pairs = [(host[int(number)], place) for place, number in
             zip(np.flatnonzero((correlation != 0) & on_device).tolist(),
                 correlation[(correlation != 0) & on_device].tolist()) if int(number) in host]
    host_places, device_places = np.array(pairs, np.int64).reshape(-1, 2).T
    return {"host": host_places, "device": device_places}
