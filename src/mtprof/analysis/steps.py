"""The steps of a program, stated or found: where each begins and ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..own_metadata import STEP_STARTS
from ..schema import Kind
from ..trace import Trace
from ..views.step_summary import Windows, stated_windows

OPTIMIZER = "Optimizer.step#"
LOADER = "enumerate(DataLoader)#"


class StepSource(Enum):
    """How the steps were found."""

    EVENTS = "ProfilerStep events"
    CALLS = "calls of step()"
    OPTIMIZER = "steps of the optimizer"
    LOADER = "batches of the loader"
    WHOLE = "the whole recording"


@dataclass(frozen=True)
class Steps:
    """Steps in order of time; `thread` is the one that makes them."""

    number: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    thread: int
    source: StepSource

    def __len__(self) -> int:
        return len(self.number)

    @property
    def known(self) -> bool:
        """Whether there are steps at all, instead of one stretch for everything."""
        return self.source is not StepSource.WHOLE

    @property
    def duration_ns(self) -> np.ndarray:
        """The length of each step."""
        return self.end_ns - self.start_ns

    @property
    def windows(self) -> Windows:
        """In the form that `step_summary` takes."""
        return self.number, self.start_ns, self.end_ns, self.thread

    def of(self, start_ns: np.ndarray) -> np.ndarray:
        """The index, from 0, of the step that contains each time, or -1."""
        place = np.searchsorted(self.start_ns, start_ns, "right") - 1
        inside = (place >= 0) & (start_ns < self.end_ns[np.maximum(place, 0)])
        return np.where(inside, place, -1)


def find_steps(trace: Trace) -> Steps:
    """The steps of a trace.

    These are the steps that the program stated, if any. Otherwise a step ends with a step of the optimizer (if several
    take turns, of the one that stepped first). Without an optimizer, a step begins with a batch of the loader. The
    first step begins with the first event of the thread, including the batch that it waits for.
    """
    events = trace.events
    if ((events["kind"] == Kind.STEP) & (events["device"] == 0)).any():
        return Steps(*stated_windows(trace), StepSource.EVENTS)
    if trace.metadata.get("mindtorch_v2", {}).get(STEP_STARTS):
        return Steps(*stated_windows(trace), StepSource.CALLS)
    return _optimizer_steps(trace) or _loader_steps(trace) or Steps(*stated_windows(trace), StepSource.WHOLE)


def _scopes(trace: Trace, prefix: str) -> np.ndarray:
    """Rows of host scopes with this beginning of the name, in order of time; an outermost one stands for those in
    it."""
    events = trace.events
    called = np.array([name.startswith(prefix) for name in trace.names], bool)[events["name"]]
    wanted = called & (events["kind"] == Kind.SCOPE) & (events["device"] == 0)
    parent = events["parent"]
    rows = np.flatnonzero(wanted)
    rows = rows[~np.append(wanted, False)[parent[rows]]]
    return rows[np.argsort(events["start_ns"][rows], kind="stable")]


def _optimizer_steps(trace: Trace) -> Steps | None:
    events = trace.events
    rows = _scopes(trace, OPTIMIZER)
    if not len(rows):
        return None
    thread = int(events["thread"][rows[0]])
    rows = rows[(events["name"][rows] == events["name"][rows[0]]) & (events["thread"][rows] == thread)]
    end = events["end_ns"][rows]
    # What the program does before its loop, such as building the model, is not part of the first step. That step begins
    # with the batch that it waited for, or with the first module or backward event that led to it, or with the first
    # event.
    start = np.concatenate(([_first_start(trace, thread, int(events["start_ns"][rows[0]]))], end[:-1]))
    return Steps(np.arange(len(rows)), start, end, thread, StepSource.OPTIMIZER)


def _first_start(trace: Trace, thread: int, until: int) -> int:
    events = trace.events
    here = (events["thread"] == thread) & (events["start_ns"] < until)
    batches = _scopes(trace, LOADER)
    batches = batches[here[batches]]
    if len(batches):
        return int(events["start_ns"][batches[-1]])
    calls = trace.optional("module_calls")
    outer = (calls["thread"] == thread) & (calls["parent"] < 0) & (calls["start_ns"] < until)
    if outer.any():
        return int(calls["start_ns"][outer].min())
    modules = here & (events["kind"] == Kind.MODULE)
    if modules.any():
        return int(events["start_ns"][modules].min())
    forward = here & (events["sequence"] >= 0)
    if forward.any():
        return int(events["start_ns"][forward].min())
    return int(events["start_ns"][here].min()) if here.any() else until


def _loader_steps(trace: Trace) -> Steps | None:
    events = trace.events
    rows = _scopes(trace, LOADER)
    if not len(rows):
        return None
    rows = rows[events["thread"][rows] == events["thread"][rows[0]]]
    thread = int(events["thread"][rows[0]])
    start = events["start_ns"][rows]
    here = (events["thread"] == thread) & (events["start_ns"] >= start[-1])
    last = int(events["end_ns"][here].max(initial=int(events["end_ns"][rows[-1]])))
    end = np.append(start[1:], last)
    # The call that finds the loader empty begins no step: nothing ran after it, or the next epoch's first batch did.
    ops = np.sort(events["start_ns"][(events["thread"] == thread) & (events["kind"] == Kind.OP)])
    after = np.searchsorted(ops, end) - np.searchsorted(ops, events["end_ns"][rows])
    kept = after > 0
    if not kept.any():
        return None
    return Steps(np.arange(int(kept.sum())), start[kept], end[kept], thread, StepSource.LOADER)
