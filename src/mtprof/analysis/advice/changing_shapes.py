"""Input shapes that are new in every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...schema import Kind
from ...views import arguments
from .basis import DATA, OPTIMIZER_SCOPES, any_step_of, inside, medians, span_ns, top_ops
from .finding import Clean, Figure, Finding, Result, Unknown

if TYPE_CHECKING:
    from ..analysis import Analysis

FEWEST_STEPS = 5
FEWEST_SHAPES = 4
SHARE_OF_STEPS = 0.4  # a smaller last batch, or training and evaluation in turns, gives two shapes
SHARE_OF_OPS = 0.2  # of the time of all ops: an episode's few numbers may have any length


def look(analysis: Analysis) -> Result:
    """The first call of each op in each step, and the number of different inputs over the steps."""
    trace, events, steps = analysis.trace, analysis.trace.events, analysis.steps
    if not len(trace.inputs):
        return Unknown("shapes were not recorded (record_shapes=True)")
    if not steps.known or len(steps) < FEWEST_STEPS:
        return Unknown(f"{len(steps) if steps.known else 'no'} steps in the recording; {FEWEST_STEPS} are needed")
    rows = top_ops(analysis)
    rows = rows[~inside(analysis, *DATA, *OPTIMIZER_SCOPES)[rows] & (events["inputs"][rows] >= 0)]
    rows = rows[np.argsort(events["start_ns"][rows], kind="stable")]
    step = any_step_of(analysis)[rows]
    times = _usual_times(events["name"][rows], trace.duration_ns[rows])
    # One row per op and step: its first call in the step.
    _, first = np.unique(step * len(trace.names) + events["name"][rows], return_index=True)
    rows, step = rows[first], step[first]
    shapes: dict[int, str] = {}
    for number in np.unique(events["inputs"][rows]).tolist():
        shapes[number] = str(arguments.shapes(analysis.view.arguments(number)))
    known: dict[str, int] = {}
    text = np.array([known.setdefault(shapes[number], len(known)) for number in events["inputs"][rows].tolist()],
                    np.int64)
    found = []
    for name in np.unique(events["name"][rows]).tolist():
        here = events["name"][rows] == name
        distinct, seen = len(np.unique(text[here])), int(here.sum())
        if seen >= FEWEST_STEPS and distinct >= FEWEST_SHAPES and distinct / seen >= SHARE_OF_STEPS:
            found.append((-distinct / seen, -seen, int(events["start_ns"][rows[here]].min()), name, distinct))
    if not found:
        return Clean("the ops of a step have the same input shapes in nearly every step")
    share_of_ops = float(sum(times[name] for *_, name, _ in found) / max(sum(times.values()), 1.0))
    if share_of_ops < SHARE_OF_OPS:
        return Clean(f"ops whose input shapes change from step to step take {share_of_ops:.1%} of the time of all ops")
    worst, variety = min(found)[3:]  # among equals, the one that runs first
    here = np.flatnonzero(events["name"][rows] == worst)
    new = np.zeros(len(steps), bool)
    seen_texts: set[int] = set()
    for at in here.tolist():
        new[step[at]] = int(text[at]) not in seen_texts
        seen_texts.add(int(text[at]))
    later = np.arange(len(steps)) >= max(1, analysis.breakdown.warmup)
    figures = [Figure("different input shapes", variety, "count"), Figure("steps", len(here), "count"),
               Figure("op", trace.names[worst], "text"),
               Figure("such ops, share of the time of all ops", share_of_ops, "share"),
               Figure("for example",
                      " then ".join(shapes[int(events["inputs"][rows[at]])] for at in here[-3:].tolist()), "text")]
    saves, share = _cost(analysis, new & later, ~new & later)
    if saves is not None:
        figures.append(Figure("extra time of steps with a new shape", saves, "ns"))
    return Finding("changing-shapes",
                   f"{variety} different input shapes in {len(here)} steps: {trace.names[worst]} hardly "
                   "ever gets the same shape twice.", figures,
                   "Pad or bucket the inputs to a few fixed sizes (sort by length, round up to a multiple), so that "
                   "memory and anything compiled or tuned for a shape can be reused.",
                   analysis.places.of_rows(rows[here]), saves, share, page="operators", query=trace.names[worst])


def _usual_times(name: np.ndarray, elapsed: np.ndarray) -> dict[int, float]:
    """The time of the calls of each name if all took their median, so that one interrupted call counts no more."""
    names, group = np.unique(name, return_inverse=True)
    usual = medians(group.reshape(-1), elapsed) * np.bincount(group.reshape(-1)) if len(names) else np.zeros(0)
    return dict(zip(names.tolist(), usual.tolist(), strict=True))


def _cost(analysis: Analysis, new: np.ndarray, known: np.ndarray) -> tuple[int | None, float | None]:
    """The extra time of steps with a new shape over steps with a known one: the time for preparation, if it is
    recorded.
    """
    events, wall = analysis.trace.events, analysis.steps.duration_ns
    prepared = events["kind"] == Kind.FIRST_USE
    if prepared.any():
        total = int(analysis.trace.duration_ns[prepared & np.isin(any_step_of(analysis), np.flatnonzero(new))].sum())
        if total:
            return total, total / span_ns(analysis)
    if known.sum() < 3 or not new.any():
        return None, None
    more = float((wall[new] - np.median(wall[known])).sum())
    return (int(more), more / span_ns(analysis)) if more > 0 else (0, 0.0)
