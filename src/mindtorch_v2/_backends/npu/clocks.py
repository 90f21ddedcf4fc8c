"""Compares the clocks of devices with the host's, and converts device times.

A device has a clock of its own, which starts elsewhere and runs a little faster or slower. A comparison records an
event on an idle stream, waits for it, and reads the host's clock before and after. The event's time is in between, so
half of the elapsed time is the possible error of the comparison. Of several tries the shortest is kept. Times between
two comparisons are converted along the line through both.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from .stream import Event, Stream

TRIES = 5
RESOLUTION_NS = 1000  # of the time of an event


class Comparison(NamedTuple):
    """One reading of both clocks."""

    host_ns: int
    device_ns: int
    error_ns: int


_STREAMS: dict[int, Stream] = {}


def compare(index: int) -> Comparison:
    """Read the clocks of the host and of a device as nearly at the same time as possible."""
    stream = _STREAMS.get(index)
    if stream is None:
        stream = _STREAMS[index] = Stream(index)  # its own stream, so that no work of the program is before the event
    best: Comparison | None = None
    for _ in range(TRIES):
        event = Event(enable_timing=True)
        before = perf_counter_ns()
        event.record(stream)
        event.synchronize()
        after = perf_counter_ns()
        device_ns = event.recorded_time() * 1000 + RESOLUTION_NS // 2
        found = Comparison((before + after) // 2, device_ns, (after - before + RESOLUTION_NS) // 2)
        if best is None or found.error_ns < best.error_ns:
            best = found
    assert best is not None
    return best


def to_host(times_ns: np.ndarray, comparisons: list[Comparison]) -> np.ndarray:
    """Times of a device, converted to the host's clock."""
    if not comparisons:
        raise ValueError("device times need at least one comparison of clocks")
    first, last = comparisons[0], comparisons[-1]
    since = times_ns - first.device_ns
    span = last.device_ns - first.device_ns
    # Integers as long as possible: times since boot have more digits than a double holds.
    drift = (last.host_ns - first.host_ns - span) / span if span > 0 else 0.0
    return first.host_ns + since + np.rint(since * drift).astype(np.int64)
