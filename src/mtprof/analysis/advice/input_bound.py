"""Steps that wait for data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...names import parse_frame
from ...schema import Kind
from ..figures import percent_text, share_text, time_text
from ..places import is_users
from ..steps import LOADER
from .basis import during, inside, named
from .finding import Clean, Figure, Finding, Result

if TYPE_CHECKING:
    from ..analysis import Analysis

# Below a sixth of a step, or a tenth of a millisecond, a faster loader is not the first thing to change.
SHARE = 0.15
LEAST_NS = 100_000


def look(analysis: Analysis) -> Result:
    """Time in the loader's `__next__`: with workers it waits there, without them it loads there."""
    events, rows = analysis.trace.events, analysis.breakdown.steady
    scopes = np.flatnonzero(named(analysis, LOADER) & (events["kind"] == Kind.SCOPE))
    if not len(scopes) or not rows:
        return Clean("no loader ran")
    data = 1000 * sum(row.data_us for row in rows)
    wall = 1000 * sum(row.wall_us for row in rows)
    share = data / wall if wall else 0.0
    each = data / len(rows)
    if share < SHARE or each < LEAST_NS:
        return Clean(f"{share_text(share)} of the steps ({time_text(each)} each) is waiting for data")
    workers = any("MultiProcessing" in analysis.trace.names[name]
                  for name in np.unique(events["name"][scopes]).tolist())
    change = ("Give the loader more workers (`num_workers`), a larger `prefetch_factor` and `persistent_workers=True`; "
              "then make an item cheaper to load." if workers else
              "Load in other processes: `DataLoader(..., num_workers=2)` or more, so that the next batch is made while "
              "this one is computed; or make whole batches at once instead of item by item.")
    figures = [Figure("share of a step", share, "share"), Figure("per step", each, "ns"),
               Figure("steps", len(rows), "count"),
               Figure("workers", "yes" if workers else "none: batches are made in the training loop", "text")]
    busiest = _busiest(analysis)
    if busiest:
        figures.append(Figure("most of it in", busiest, "text"))
    # With workers the wait can drop to zero. Without workers it can too, if there is a spare core.
    return Finding("input-bound", f"{percent_text(share)} of a step waits for data ({time_text(each)} on average).",
                   figures, change, analysis.places.of_rows(scopes), int(data), share, page="timeline", query=LOADER)


def _busiest(analysis: Analysis) -> str:
    """The user's function, or else the op, that took most of the time in the loader."""
    events = analysis.trace.events
    elapsed = analysis.trace.duration_ns
    calls = np.flatnonzero(events["kind"] == Kind.PYTHON)
    users = np.array([is_users(parse_frame(name)) for name in analysis.trace.names], bool)
    calls = calls[users[events["name"][calls]]]
    rows = calls[during(analysis, calls, LOADER)]
    if not len(rows):
        rows = np.flatnonzero(inside(analysis, LOADER) & (events["kind"] == Kind.OP))
    if not len(rows):
        return ""
    sums = np.bincount(events["name"][rows], elapsed[rows])
    return f"{analysis.trace.names[int(np.argmax(sums))]} ({time_text(sums.max())})"
