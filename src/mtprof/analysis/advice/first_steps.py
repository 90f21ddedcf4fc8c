"""First steps that take much longer than the rest because of what the program does in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ...names import parse_frame
from ...schema import Kind
from ..breakdown import warmup
from ..figures import time_text
from ..places import Place, is_users
from .basis import any_step_of, python_own_ns
from .finding import Clean, Figure, Finding, Result, Unknown

if TYPE_CHECKING:
    from ..analysis import Analysis

FEWEST_STEPS = 4
RATIO = 2.0
SHARE = 0.05
# In one function: a user who waits less than this for the first step does not notice, and small parts of many are
# noise.
LEAST_NS = 100_000_000

# Built-in functions of the runtime: a program cannot change what they do at their first use.
_RUNTIME = re.compile(r"<built-in method \w+ of (type|Tensor|torch|mindtorch|PyCapsule|module)\b")


def look(analysis: Analysis) -> Result:
    """The user's Python, and what it called outside the runtime, that took longer in the first steps."""
    steps, events, trace = analysis.steps, analysis.trace.events, analysis.trace
    if not steps.known or len(steps) < FEWEST_STEPS:
        return Unknown(f"{len(steps) if steps.known else 'no'} steps in the recording; {FEWEST_STEPS} are needed")
    if not (events["kind"] == Kind.PYTHON).any():
        return Unknown("Python calls were not recorded (with_stack=True); they tell the program's work from what "
                       "the runtime prepares once")
    wall = steps.duration_ns
    slow = warmup(wall, RATIO)
    usual = float(np.median(wall[max(slow, 1):]))
    ratio = wall[0] / usual if usual else 1.0
    if not slow:
        return Clean(f"the first step takes {ratio:.1f} times the median of the later ones")
    own = python_own_ns(analysis)
    changeable = np.array([is_the_programs(name) for name in trace.names], bool)
    step = any_step_of(analysis)
    rows = np.flatnonzero((step >= 0) & (events["kind"] == Kind.PYTHON) & changeable[events["name"]])
    early = step[rows] < slow
    count = len(trace.names)
    first = np.bincount(events["name"][rows[early]], own[rows[early]], count)
    later = np.bincount(events["name"][rows[~early]], own[rows[~early]], count) / (len(steps) - slow) * slow
    more = first - later
    excess = float(more.sum())
    worst = int(np.argmax(more))
    if more[worst] < LEAST_NS or excess < SHARE * wall.sum():
        return Clean(f"the first step takes {ratio:.1f} times the median of the later ones; the program's own part of "
                     f"that is {time_text(max(excess, 0.0))}")
    those = rows[early & (events["name"][rows] == worst)]
    frame = parse_frame(trace.names[worst])
    place = analysis.places.of_rows(those, own[those].astype(float))
    if is_users(frame):
        place = Place(*frame)
    return Finding("slow-first-steps", f"The first {'step takes' if slow == 1 else f'{slow} steps take'} "
                   f"{time_text(excess)} more than the later ones, most of it in {trace.names[worst]}.",
                   [Figure("slow steps", slow, "count"), Figure("first step", float(wall[0]), "ns"),
                    Figure("median of the later ones", usual, "ns"), Figure("the program's own part", excess, "ns"),
                    Figure("most of it in", f"{trace.names[worst]} ({time_text(float(more[worst]))})", "text")],
                   "Do one-time work before the loop (build tables and caches, load files), and save between runs "
                   "what is expensive to build.",
                   place, int(excess), excess / float(wall.sum()), page="timeline", query=trace.names[worst])


def is_the_programs(name: str) -> bool:
    """Whether a Python call is the user's code, or a built-in function outside the runtime."""
    if name.startswith("<built-in"):
        return not _RUNTIME.match(name)
    return is_users(parse_frame(name))
