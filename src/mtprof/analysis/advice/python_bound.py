"""Steps that spend their time in the program's own Python code instead of in ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...names import parse_frame
from ...schema import Kind
from ..figures import percent_text, time_text
from ..places import Place, is_users
from .basis import DATA, during, python_own_ns, span_ns, step_count, step_of
from .finding import Clean, Figure, Finding, Result, Unknown
from .first_steps import is_the_programs
from .waiting import is_wait

if TYPE_CHECKING:
    from ..analysis import Analysis

# Recording Python calls slows them down: a quarter of a step shows as a third.
SHARE = 0.33
LEAST_NS = 1_000_000  # in a step: in every program the loop's own lines take some tenths of a millisecond


def look(analysis: Analysis) -> Result:
    """Self time of the user's functions, and of built-in functions that they call, outside of ops, waits and
    loaders."""
    trace, events = analysis.trace, analysis.trace.events
    if not (events["kind"] == Kind.PYTHON).any():
        return Unknown("Python calls were not recorded (with_stack=True)")
    if not analysis.steps.known:
        return Unknown("no steps in the recording: one-time work is no reason for a change")
    own_work = np.array([is_the_programs(name) and not is_wait(name) for name in trace.names], bool)
    rows = np.flatnonzero((events["kind"] == Kind.PYTHON) & own_work[events["name"]] & (step_of(analysis) >= 0))
    rows = rows[~during(analysis, rows, *DATA)]
    # A function that began before the first step, such as the one with the loop, counts for none of them.
    took = python_own_ns(analysis)[rows]
    total, steps = int(took.sum()), step_count(analysis)
    share = total / span_ns(analysis)
    if share < SHARE or total < LEAST_NS * steps:
        return Clean(f"the program's own Python code is {share:.1%} of the steps, {time_text(total / steps)} each")
    functions = np.array([is_users(parse_frame(name)) for name in trace.names], bool)
    sums = np.bincount(events["name"][rows], took, len(trace.names))
    worst = int(np.argmax(np.where(functions, sums, -1)))
    place = Place(*parse_frame(trace.names[worst]))
    calls = int((events["name"][rows] == worst).sum())
    return Finding("python-bound", f"{percent_text(share)} of a step is the program's own Python code, most of it in "
                   f"{place.function}.",
                   [Figure("per step", total / steps, "ns"), Figure("share of a step", share, "share"),
                    Figure(f"self time of {place.function}", float(sums[worst]), "ns"),
                    Figure("calls of it per step", calls / steps, "count")],
                   "Do it once before the loop, in workers of the loader, or with ops on whole tensors instead of "
                   "loops over elements. (Recording Python calls slows them down: `--no-stacks` shows the step "
                   "without that.)",
                   place, total, share, page="timeline", query=trace.names[worst])
