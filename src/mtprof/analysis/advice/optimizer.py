"""Optimizers that update parameters one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...schema import Kind
from ...tables.tree import nearest
from ..figures import percent_text, time_text
from ..steps import OPTIMIZER
from .basis import named, span_ns, step_of
from .finding import Clean, Figure, Finding, Result

if TYPE_CHECKING:
    from ..analysis import Analysis

FUSED = ("Adam", "AdamW", "SGD", "Adagrad")  # PyTorch's optimizers that have it
SHARE = 0.10
OPS_PER_STEP = 40


def look(analysis: Analysis) -> Result:
    """`Optimizer.step` scopes with ops for each parameter, where one op could do all."""
    trace, events = analysis.trace, analysis.trace.events
    scope = named(analysis, OPTIMIZER) & (events["kind"] == Kind.SCOPE)
    if not scope.any():
        return Clean("no optimizer stepped")
    scope &= step_of(analysis) >= 0
    around = nearest(events["parent"], scope)
    op = (events["kind"] == Kind.OP) & (around >= 0) & scope[around]
    outer = np.flatnonzero(op & ~np.append(op, False)[events["parent"]])
    together = np.array([("_foreach_" in name or "_fused_" in name) for name in trace.names], bool)
    steps = max(1, int(scope.sum()))
    time_ns = int(trace.duration_ns[scope].sum())
    share = time_ns / span_ns(analysis)
    if not len(outer):
        return Clean(f"an optimizer's step takes {time_text(time_ns / steps)} and runs no ops for single parameters")
    single = outer[~together[events["name"][outer]]]
    per_step = len(single) / steps
    if per_step < OPS_PER_STEP or share < SHARE or len(single) < len(outer) / 2:
        return Clean(f"an optimizer's step is {share:.1%} of a step and runs {per_step:.0f} ops for single parameters")
    counts = np.bincount(events["name"][single])
    parameters = int(counts.max()) / steps
    per_parameter = max(1.0, per_step / max(parameters, 1.0))
    name = trace.names[int(np.bincount(events["name"][scope]).argmax())].removeprefix(OPTIMIZER).removesuffix(".step")
    saves = int(time_ns * (1 - 1 / per_step))
    return Finding("unfused-optimizer", f"{name} updates parameters one by one: {per_step:,.0f} ops and "
                   f"{time_text(time_ns / steps)} a step, {percent_text(share)} of it.",
                   [Figure("ops a step", per_step, "count"), Figure("ops a parameter", per_parameter, "count"),
                    Figure("time a step", time_ns / steps, "ns"), Figure("share of a step", share, "share")],
                   f"Create it as `optim.{name}(..., fused=True)`, one op for a whole step, or with `foreach=True`."
                   if name in FUSED else f"Create it as `optim.{name}(..., foreach=True)`: ops for all parameters.",
                   analysis.places.of_rows(np.flatnonzero(scope)), saves, saves / span_ns(analysis), page="operators",
                   query=OPTIMIZER)
