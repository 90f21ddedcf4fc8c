"""The same buffer, made and filled again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...tables.distinct import distinct
from ..figures import percent_text
from .basis import DATA, OPTIMIZER_SCOPES, inside, span_ns, top_ops
from .finding import Clean, Figure, Finding, Result

if TYPE_CHECKING:
    from ..analysis import Analysis

# Ops whose result depends only on a size and a number: making it once is enough.
_MAKERS = frozenset(f"aten::{prefix}{name}{suffix}" for name in ("zeros", "ones", "full", "empty")
                    for prefix, suffix in (("", ""), ("", "_like"), ("new_", ""))) | {
    "aten::arange", "aten::eye", "aten::linspace", "aten::logspace", "aten::range"}
FEWEST_CALLS = 20
SHARE = 0.15
USUAL_NS = 50_000  # shorter ones cost calls rather than memory; tiny-ops looks at those


def look(analysis: Analysis) -> Result:
    """Ops that only make memory, of one size at one place; steps are not needed."""
    trace, events = analysis.trace, analysis.trace.events
    makes = np.array([name in _MAKERS for name in trace.names], bool)
    rows = top_ops(analysis)
    rows = rows[makes[events["name"][rows]] & ~inside(analysis, *DATA, *OPTIMIZER_SCOPES)[rows]]
    if not len(rows):
        return Clean("no op makes a buffer in the steps")
    took = trace.duration_ns[rows]
    group, _ = distinct([events["name"][rows], events["inputs"][rows],
                         analysis.places.frames(events["stack"][rows])])
    sums, calls = np.bincount(group, took), np.bincount(group)
    sums[calls < FEWEST_CALLS] = 0.0
    for large in np.flatnonzero(sums >= SHARE * span_ns(analysis)):  # a few at most: they share the time
        if np.median(took[group == large]) < USUAL_NS:
            sums[large] = 0.0
    worst = int(np.argmax(sums))
    total, count = float(sums[worst]), int(calls[worst])
    share = total / span_ns(analysis)
    if share < SHARE:
        return Clean(f"making the same buffers again takes {share:.1%} of the time")
    here = rows[group == worst]
    name = trace.names[events["name"][here[0]]]
    saves = total * (count - 1) / count
    figures = [Figure("times it is made", count, "count"), Figure("each takes", total / count, "ns"),
               Figure("share of the time", share, "share"), Figure("op", name, "text")]
    if trace.has("memory"):
        made = analysis.view.cpu_bytes + analysis.view.device_bytes
        size = int(np.median(made[np.isin(analysis.view.row, here)]))
        if size > 0:
            figures.append(Figure("size of one", size, "bytes"))
    return Finding("memory-churn", f"The same buffer is made {count:,} times by {name}, which takes "
                   f"{percent_text(share)} of the time.", figures,
                   "Make it once before the loop and reuse it: register a mask or a table as a buffer of the "
                   "module, fill scratch memory in place (`zero_`, `out=`), or use `expand` instead of a filled copy.",
                   analysis.places.of_rows(here), int(saves), saves / span_ns(analysis), page="operators", query=name)
