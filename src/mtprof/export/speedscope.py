"""Speedscope's JSON: a profile of nested events per thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from ..schema import PYTHON_KINDS
from ..trace import Trace

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def document(trace: Trace, name: str = "") -> bytes:
    """The file. Ops and Python calls of a thread are separate profiles, because they are separate trees."""
    python = np.isin(trace.events["kind"], PYTHON_KINDS)
    profiles = []
    for number, info in enumerate(trace.threads):
        here = trace.events["thread"] == number
        title = info.name or f"thread {info.tid}"
        for rows, what in ((np.flatnonzero(here & ~python), ""), (np.flatnonzero(here & python), ", Python")):
            if len(rows):
                profiles.append(_profile(trace, rows, f"{info.process_name} {info.pid}, {title}{what}"))
    return orjson.dumps({
        "$schema": SCHEMA, "name": name, "exporter": "mtprof", "activeProfileIndex": 0,
        "shared": {"frames": [{"name": text} for text in trace.names]}, "profiles": profiles})


def _profile(trace: Trace, rows: np.ndarray, name: str) -> dict[str, Any]:
    start, end = trace.events["start_ns"][rows], trace.events["end_ns"][rows]
    low, high = int(start.min()), int(end.max())
    return {"type": "evented", "name": name, "unit": "nanoseconds", "startValue": 0, "endValue": high - low,
            "events": list(_events(trace, rows, low))}


def _events(trace: Trace, rows: np.ndarray, low: int) -> Iterator[dict[str, Any]]:
    """Opening and closing of each event, nested: an event that outlasts the event around it is closed with that."""
    open_rows: list[tuple[int, int]] = []  # end and frame
    columns = (trace.events[key][rows].tolist() for key in ("start_ns", "end_ns", "name"))
    for start, end, frame in zip(*columns):
        while open_rows and open_rows[-1][0] <= start:
            closes, closed = open_rows.pop()
            yield {"type": "C", "frame": closed, "at": closes - low}
        if open_rows:
            end = min(end, open_rows[-1][0])
        yield {"type": "O", "frame": frame, "at": start - low}
        open_rows.append((end, frame))
    while open_rows:
        closes, closed = open_rows.pop()
        yield {"type": "C", "frame": closed, "at": closes - low}
