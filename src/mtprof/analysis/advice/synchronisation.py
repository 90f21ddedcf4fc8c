"""Calls that make the host wait for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...schema import DEVICE_KINDS, Kind
from ...tables.tree import nearest
from ..device.waits import sync_rows
from ..figures import percent_text, time_text
from .basis import span_ns, step_count, step_of
from .finding import Clean, Figure, Finding, Result, Unknown

if TYPE_CHECKING:
    from ..analysis import Analysis

SHARE = 0.05


def look(analysis: Analysis) -> Result:
    """Synchronising runtime calls within steps, by the op and the place that made them."""
    trace, events = analysis.trace, analysis.trace.events
    if not np.isin(events["kind"], DEVICE_KINDS).any():
        return Unknown("no device work in the recording: a program on the CPU has no device to wait for")
    rows = sync_rows(analysis)
    rows = rows[step_of(analysis)[rows] >= 0]
    if not len(rows):
        return Clean("no synchronising call within steps")
    elapsed = trace.duration_ns[rows]
    total = int(elapsed.sum())
    share = total / span_ns(analysis)
    steps = step_count(analysis)
    if share < SHARE:
        return Clean(f"{len(rows) / steps:.1f} synchronising calls a step take {share:.1%} of it")
    op = nearest(events["parent"], events["kind"] == Kind.OP)
    outer = op[rows]
    while True:  # the op that the program called, not the helper inside it that waits
        above = np.where(outer >= 0, events["parent"][outer], -1)
        climbs = (outer >= 0) & (above >= 0) & (np.append(events["kind"], 255)[above] == Kind.OP)
        if not climbs.any():
            break
        outer = np.where(climbs, above, outer)
    sums = np.bincount(outer + 1, elapsed)
    worst = int(np.argmax(np.bincount(np.where(outer >= 0, events["name"][outer], 0), elapsed)))
    who = trace.names[worst] or "a direct call"
    place = analysis.places.of_rows(np.where(outer >= 0, outer, rows), elapsed)
    return Finding("synchronisation", f"The host waits for the device {len(rows) / steps:,.1f} times a step, "
                   f"{percent_text(share)} of the time, mostly in {who}.",
                   [Figure("calls a step", len(rows) / steps, "count"), Figure("time a step", total / steps, "ns"),
                    Figure("share of a step", share, "share"), Figure("longest", int(elapsed.max()), "ns"),
                    Figure("in", f"{who} ({time_text(float(sums.sum()))} in total)", "text")],
                   "Keep results on the device until the end of an epoch (sum losses as tensors, call `.item()` "
                   "once), avoid `.cpu()`, `print`, boolean masks and `nonzero` in the loop, and copy from "
                   "pinned memory with `non_blocking=True`.",
                   place, total, share, page="operators", query=who)
