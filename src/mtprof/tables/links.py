"""Links each backward event to its forward op."""

from __future__ import annotations

import numpy as np

from ..schema import Kind
from ..trace import Trace


def processes(trace: Trace) -> np.ndarray:
    """For each thread, the number of its process, because thread ids and sequence numbers count per process."""
    known: dict[int, int] = {}
    return np.array([known.setdefault(info.pid, len(known)) for info in trace.threads], np.int64)


def forward_of(trace: Trace) -> np.ndarray:
    """For each backward event, the row of its forward op, or -1.

    That is the last op before the backward that starts with the same sequence number: the op that records a node takes
    the number last, after the composite ops around it have only read it. Numbers are counted per thread, so an op of
    the backward's own thread comes before one of another thread of its process.
    """
    events = trace.events
    result = np.full(len(trace), -1, np.int64)
    numbered = events["sequence"] >= 0
    forward = np.flatnonzero(numbered & (events["kind"] == Kind.OP))
    backward = np.flatnonzero(numbered & np.isin(events["kind"], [Kind.BACKWARD, Kind.BACKWARD_FUNCTION]))
    if not len(forward) or not len(backward):
        return result
    start, sequence, thread = events["start_ns"], events["sequence"], events["thread"]
    process = processes(trace)[thread]
    for same_thread in (False, True):
        lane = thread if same_thread else process
        both = np.concatenate((forward, backward))
        asks = np.concatenate((np.zeros(len(forward), bool), np.ones(len(backward), bool)))
        order = np.lexsort((asks, start[both], sequence[both], lane[both]))
        rows, asks = both[order], asks[order]
        # Carry the index of the latest forward op along; it counts if it has the same number and lane.
        latest = np.maximum.accumulate(np.where(asks, -1, np.arange(len(rows))))
        found = rows[np.maximum(latest, 0)]
        fits = asks & (latest >= 0) & (sequence[found] == sequence[rows]) & (lane[found] == lane[rows])
        result[rows[fits]] = found[fits]
    return result
