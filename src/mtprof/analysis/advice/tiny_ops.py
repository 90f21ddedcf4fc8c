"""Many ops so small that calling them costs more than computing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...schema import Kind
from ...tables.links import forward_of
from ...tables.tree import nearest
from ..figures import counted, percent_text, time_text
from .basis import DATA, OPTIMIZER_SCOPES, inside, medians, span_ns, step_count, top_ops
from .finding import Clean, Figure, Finding, Result

if TYPE_CHECKING:
    from ..analysis import Analysis

# A call costs some microseconds of Python and dispatch. That is most of an op that usually takes less than 50 µs, if a
# hundred of them at one place could be one op. Usually: the median, because another program may interrupt an op for
# long.
SMALL_NS = 50_000
CALLS_PER_STEP = 100
SHARE = 0.15
LONGEST_GAP_NS = 1_000_000  # a longer pause before an op is not the cost of calling it


def look(analysis: Analysis) -> Result:
    """Ops of one name that are called again and again at one place within a step."""
    trace, events = analysis.trace, analysis.trace.events
    rows = top_ops(analysis)
    rows = rows[~(inside(analysis, *DATA, *OPTIMIZER_SCOPES) | _in_backward(analysis))[rows]]
    if not len(rows):
        return Clean("no ops in the forward of a step")
    rows = rows[np.argsort(events["start_ns"][rows], kind="stable")]
    start, end = events["start_ns"][rows], events["end_ns"][rows]
    pause = start - np.concatenate(([start[0]], end[:-1]))
    cost = (end - start) + np.where((pause > 0) & (pause < LONGEST_GAP_NS), pause, 0)
    frame = analysis.places.frames(events["stack"][rows])
    place = np.unique(frame, return_inverse=True)[1].reshape(-1)
    pairs, pair = np.unique(place * len(trace.names) + events["name"][rows], return_inverse=True)
    pair = pair.reshape(-1)
    calls = np.bincount(pair)
    usual = medians(pair, end - start)
    steps = step_count(analysis)
    repeated = (calls >= CALLS_PER_STEP * steps) & (usual < SMALL_NS)
    most = int(calls.max(initial=0)) / steps
    if not repeated.any():
        return Clean(f"no op runs {CALLS_PER_STEP} times a step at one place; the most frequent runs "
                     f"{counted(round(most), 'time')}")
    # All small ops of the place count, not only those that are frequent enough by themselves.
    worst_place = -1
    worst_cost = -1.0
    for number in np.unique(pairs[repeated] // len(trace.names)).tolist():
        here = (place == number) & (usual < SMALL_NS)[pair]
        if float(cost[here].sum()) > worst_cost:
            worst_place, worst_cost = int(number), float(cost[here].sum())
    here = (place == worst_place) & (usual < SMALL_NS)[pair]
    backward = _backward_ns(analysis, rows[here])
    total = worst_cost + backward
    share = total / span_ns(analysis)
    count = int(here.sum())
    if share < SHARE:
        return Clean(f"{count / steps:.0f} small ops a step take {share:.1%} of it")
    names = np.bincount(events["name"][rows[here]])
    most_named = [trace.names[number] for number in np.argsort(-names, kind="stable")[:3].tolist() if names[number]]
    kinds = int((names > 0).sum())
    ideal = float(np.bincount(pair[here], (end - start)[here])[np.unique(pair[here])].sum()) / max(count / kinds, 1)
    figures = [Figure("ops a step", count / steps, "count"), Figure("mean time of one",
                                                                    float((end - start)[here].mean()), "ns"),
               Figure("with the pauses between them, per step", worst_cost / steps, "ns"),
               Figure("their backward, per step", backward / steps, "ns"), Figure("share of a step", share, "share"),
               Figure("ops", ", ".join(most_named), "text")]
    return Finding("tiny-ops", f"{count / steps:,.0f} tiny ops a step take {percent_text(share)} of it "
                   f"({time_text(float((end - start)[here].mean()))} each).", figures,
                   "Compute them together: make what the loop runs over a dimension of one tensor (batch the "
                   "loop, use `bmm`, `einsum`, `cumsum`, a fused layer), or give the model a larger batch.",
                   analysis.places.of_rows(rows[here]), max(0, int(total - ideal)),
                   max(0.0, (total - ideal) / span_ns(analysis)), page="operators",
                   query=most_named[0] if most_named else "")


def _in_backward(analysis: Analysis) -> np.ndarray:
    events = analysis.trace.events
    backward = events["kind"] == Kind.BACKWARD
    return nearest(events["parent"], backward) >= 0 if backward.any() else backward


def _backward_ns(analysis: Analysis, rows: np.ndarray) -> float:
    """The time of the backward of some ops: of the nodes that they, or ops inside them, recorded."""
    events = analysis.trace.events
    forward = forward_of(analysis.trace)
    engine = np.flatnonzero((events["kind"] == Kind.BACKWARD) & (forward >= 0))
    if not len(engine):
        return 0.0
    wanted = np.zeros(len(analysis.trace), bool)
    wanted[rows] = True
    within = nearest(events["parent"], wanted)[forward[engine]] >= 0
    return float(analysis.trace.duration_ns[engine[within]].sum())
