"""Pauses of Python's garbage collector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...schema import Kind
from ..figures import counted, percent_text, time_text
from .basis import span_ns, step_of
from .finding import Clean, Figure, Finding, Result, Unknown

if TYPE_CHECKING:
    from ..analysis import Analysis

SHARE = 0.03
LEAST_NS = 10_000_000
# One collection of everything happens now and then and says nothing about the next steps. Nor does the longest pause,
# in which the machine may have done something else.
FEWEST_LONG, LONG_NS = 3, 1_000_000
OF_ALL_OBJECTS = 2  # the generation


def look(analysis: Analysis) -> Result:
    """Time that the collector took within steps."""
    trace, events = analysis.trace, analysis.trace.events
    rows = np.flatnonzero((events["kind"] == Kind.GC) & (step_of(analysis) >= 0))
    if not (events["kind"] == Kind.GC).any() and not trace.has("collections"):
        return Unknown("no pause of the collector was recorded (record_python_gc_info=True records them)")
    if not len(rows):
        return Clean("no pause of the collector was recorded within steps")
    elapsed = analysis.trace.duration_ns[rows]
    total = int(elapsed.sum())
    share = total / span_ns(analysis)
    usual = total - int(elapsed.max())
    if usual < SHARE * span_ns(analysis) or usual < LEAST_NS or (elapsed >= LONG_NS).sum() < FEWEST_LONG:
        return Clean(f"{counted(len(rows), 'pause')} took {time_text(total)}, {share:.1%} of the steps")
    found = trace.optional("collections")
    of_all = int(np.isin(found["row"][found["generation"] == OF_ALL_OBJECTS], rows).sum())
    full = f", {of_all} over all objects" if of_all else ""
    return Finding("garbage-collector", f"Python's garbage collector takes {percent_text(share)} of the steps "
                   f"({len(rows)} pauses{full}, the longest {time_text(int(elapsed.max()))}).",
                   [Figure("pauses", len(rows), "count"), Figure("over all objects", of_all, "count"),
                    Figure("together", total, "ns"),
                    Figure("longest", int(elapsed.max()), "ns"), Figure("share of the steps", share, "share")],
                   "Call `gc.freeze()` after setting up and raise `gc.set_threshold(...)`, or turn it off in the "
                   "loop and call `gc.collect()` between epochs. Also look for containers that the loop fills with "
                   "objects.",
                   analysis.places.of_rows(rows, elapsed), total, share, page="timeline", query="Python GC")
