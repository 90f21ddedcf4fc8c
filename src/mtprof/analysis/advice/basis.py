"""What several checks share: the time that shares refer to, and the selection of rows by place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...schema import PYTHON_KINDS, Kind
from ...tables.derived import callers
from ...tables.tree import nearest
from ..steps import LOADER

if TYPE_CHECKING:
    from ..analysis import Analysis


def span_ns(analysis: Analysis) -> int:
    """The time that shares refer to: the steps after the warm-up, or the whole recording if there are no steps."""
    return max(1, int(analysis.steps.duration_ns[analysis.breakdown.warmup:].sum()))


def step_count(analysis: Analysis) -> int:
    """The number of these steps."""
    return max(1, len(analysis.steps) - analysis.breakdown.warmup)


def any_step_of(analysis: Analysis) -> np.ndarray:
    """For each event the index of its step, from 0, or -1 outside of steps and on other threads than that of steps."""
    events = analysis.trace.events
    return np.where(events["thread"] == analysis.steps.thread, analysis.steps.of(events["start_ns"]), -1)


def step_of(analysis: Analysis) -> np.ndarray:
    """The same, with -1 for the warm-up, because much in it happens only once."""
    step = any_step_of(analysis)
    return np.where(step >= analysis.breakdown.warmup, step, -1)


def named(analysis: Analysis, *prefixes: str) -> np.ndarray:
    """Which events have a name with this beginning."""
    trace = analysis.trace
    return np.array([name.startswith(prefixes) for name in trace.names], bool)[trace.events["name"]]


def inside(analysis: Analysis, *prefixes: str) -> np.ndarray:
    """Which events are a scope of this name, or are inside one at any depth."""
    events = analysis.trace.events
    scope = named(analysis, *prefixes) & (events["kind"] == Kind.SCOPE)
    if not scope.any():
        return np.zeros(len(scope), bool)
    return nearest(events["parent"], scope) >= 0


def during(analysis: Analysis, rows: np.ndarray, *prefixes: str) -> np.ndarray:
    """Which of some rows began while a scope of this name ran on their thread; Python calls have no scope around
    them."""
    events = analysis.trace.events
    scope = np.flatnonzero(named(analysis, *prefixes) & (events["kind"] == Kind.SCOPE))
    found = np.zeros(len(rows), bool)
    for thread in np.unique(events["thread"][scope]).tolist():
        own = scope[events["thread"][scope] == thread]
        own = own[np.argsort(events["start_ns"][own], kind="stable")]
        reached = np.maximum.accumulate(events["end_ns"][own])
        place = np.searchsorted(events["start_ns"][own], events["start_ns"][rows], "right") - 1
        found |= (events["thread"][rows] == thread) & (place >= 0) & (
            events["start_ns"][rows] < reached[np.maximum(place, 0)])
    return found


def top_ops(analysis: Analysis) -> np.ndarray:
    """Rows of outermost ops within steps, on the thread of steps."""
    events = analysis.trace.events
    op = events["kind"] == Kind.OP
    above = events["parent"]
    outer = op & ~np.append(op, False)[above]
    return np.flatnonzero(outer & (step_of(analysis) >= 0))


def medians(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The median of each group of values; groups are numbered from 0 and not empty."""
    order = np.lexsort((values, group))
    first = np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 1))
    return values[order][first + (np.bincount(group) - 1) // 2]


def python_own_ns(analysis: Analysis) -> np.ndarray:
    """For each Python call the time that it spent outside other calls, ops and scopes; 0 for other events."""
    trace, events, view = analysis.trace, analysis.trace.events, analysis.view
    own = np.zeros(len(trace), np.int64)
    shown = view.row >= 0
    own[view.row[shown]] = view.self_cpu_ns[shown]
    own[~np.isin(events["kind"], PYTHON_KINDS)] = 0
    caller = callers(events)
    direct = np.flatnonzero((caller >= 0) & (events["kind"] != Kind.STEP))
    own -= np.bincount(caller[direct], trace.duration_ns[direct], len(own)).astype(np.int64)
    return np.maximum(own, 0)


DATA = (LOADER,)
OPTIMIZER_SCOPES = ("Optimizer.step#", "Optimizer.zero_grad#")
