"""Facts that follow from other events of a trace: the step and the Python stack of an event.

A Kineto file states neither. Its reader derives both here, and the writer states only what deviates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..names import has_lines, parse_frame, step_number
from ..schema import Kind
from ..trace import Columns, Frame, Trace
from .modules import with_modules
from .nesting import enclosing_rows, parents
from .tree import nearest


def steps(kind: np.ndarray, name: np.ndarray, start_ns: np.ndarray, end_ns: np.ndarray,
          names: Sequence[str]) -> np.ndarray:
    """The profiler step of each event, from the `ProfilerStep#N` events: N from its start to its end, then N + 1."""
    rows = np.flatnonzero(kind == Kind.STEP)
    numbers = [step_number(names[n]) for n in name[rows].tolist()]
    known = np.array([n is not None and n < 2**31 - 1 for n in numbers], bool)
    if not known.any():
        return np.zeros(len(kind), np.int32)
    rows = rows[known]
    number = np.array([n for n, ok in zip(numbers, known.tolist(), strict=True) if ok], np.int64)
    order = np.lexsort((number, start_ns[rows]))
    rows, number = rows[order], number[order]
    position = np.searchsorted(start_ns[rows], start_ns, "right") - 1
    inside = np.maximum(position, 0)
    over = (position >= 0) & (start_ns > end_ns[rows][inside])
    return (number[inside] + over).astype(np.int32)


class Calls:
    """The Python calls among events: their rows, and the row of each one's caller or -1.

    Callers are searched among Python calls only. A scope that opens in one call and closes in another, as
    `record_function` does in `__enter__` and `__exit__`, crosses both and must not come between.
    """

    def __init__(self, events: Columns) -> None:
        self.rows = rows = np.flatnonzero((events["kind"] == Kind.PYTHON) | (events["kind"] == Kind.MODULE))
        above = parents(events["thread"][rows], events["start_ns"][rows], events["end_ns"][rows])
        self.callers = np.append(rows, -1)[above]
        self._calls = {**{key: events[key][rows] for key in ("thread", "start_ns", "end_ns")}, "parent": above}

    def around(self, thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
        """The row of the innermost call of a thread at each instant, or -1."""
        return np.append(self.rows, -1)[enclosing_rows(self._calls, thread, time_ns)]


def callers(events: Columns) -> np.ndarray:
    """For each event that is not a Python call, the row of the call directly around it, or -1 if an event is
    between."""
    calls = Calls(events)
    if not len(calls.rows):
        return np.full(len(events["kind"]), -1, np.int64)
    result = calls.around(events["thread"], events["start_ns"])
    result[calls.rows] = -1
    # A parent in the same call is between. So is nothing if the event outlives the call, which a scope may do.
    between = (events["parent"] >= 0) & (result[events["parent"]] == result)
    return np.where(between | (events["end_ns"] > events["end_ns"][result]), -1, result)


class Stacks:
    """Stacks as they are found: each is a frame on top of another stack."""

    def __init__(self, frames: Sequence[Frame] = ()) -> None:
        self.frames = list(frames)
        self._frame_ids = {frame: number for number, frame in enumerate(self.frames)}
        self._ids: dict[tuple[int, int], int] = {}

    def frame(self, frame: Frame) -> int:
        """The number of a frame."""
        found = self._frame_ids.setdefault(frame, len(self.frames))
        if found == len(self.frames):
            self.frames.append(frame)
        return found

    def of(self, frame: int, caller: int) -> int:
        """The number of the stack with a frame on top of another stack, or of no stack (-1)."""
        return self._ids.setdefault((frame, caller), len(self._ids))

    def table(self) -> Columns:
        """All of them as columns."""
        frame, caller = np.array(list(self._ids), np.int32).reshape(-1, 2).T
        return {"frame": frame.copy(), "caller": caller.copy()}

    def take(self, trace: Trace) -> np.ndarray:
        """Add the stacks of a trace; returns the number of each here, and one more entry for -1."""
        table = trace.optional("stacks")
        frames = [self.frame(frame) for frame in trace.frames]
        numbers = [-1]  # shifted by one, so that -1 leads to the first entry
        for frame, caller in zip(table["frame"].tolist(), table["caller"].tolist()):
            numbers.append(self.of(frames[frame], numbers[caller + 1]))
        return np.array([*numbers[1:], -1], np.int32)


def stacks(events: Columns, names: Sequence[str], known: Stacks) -> np.ndarray:
    """For each event the Python calls that were open when it started, innermost first; for a call, those around it.

    The results are numbers of stacks, which are added to `known`; -1 means no Python call. Frames have the line that
    ran if events know it, otherwise the line of the function. Rows must be sorted as in a Trace.
    """
    calls = Calls(events)
    rows = calls.rows
    result = np.full(len(events["kind"]), -1, np.int32)
    if not len(rows):
        return result
    called = events["name"].tolist() if len(rows) * 2 > len(result) else events["name"]
    bare = {n: parse_frame(names[n]) for n in np.unique(events["name"][rows]).tolist()}
    frames: dict[tuple[int, int], int] = {}

    def frame(name: int, line: int) -> int:
        found = frames.get((name, line))
        if found is None:
            whole = bare[name]
            found = frames[name, line] = known.frame(whole._replace(line=line) if line and has_lines(whole) else whole)
        return found

    around = {-1: -1}  # by row of a call, the stack around it
    for row, caller, line in zip(rows.tolist(), calls.callers.tolist(), events["line"][rows].tolist(), strict=True):
        around[row] = known.of(frame(int(called[caller]), line), around[caller]) if caller >= 0 else -1
    result[rows] = [around[row] for row in rows.tolist()]
    others = np.ones(len(result), bool)
    others[rows] = False
    others = np.flatnonzero(others)
    innermost = calls.around(events["thread"][others], events["start_ns"][others])
    inside = innermost >= 0
    others, innermost = others[inside], innermost[inside]
    line = events["line"][others].astype(np.int64) & 0xFFFFFFFF  # a file may have a negative line
    pairs, which = np.unique(innermost.astype(np.int64) << 32 | line, return_inverse=True)
    found = [known.of(frame(int(called[pair >> 32]), pair & 0xFFFFFFFF), around[pair >> 32]) for pair in pairs.tolist()]
    result[others] = np.array(found, np.int32)[which.reshape(-1)]
    return result


def with_stacks(trace: Trace) -> Trace:
    """The trace with the stack of each event: the Python calls around it."""
    known = Stacks()
    stack = stacks(trace.events, trace.names, known)
    return replace(trace.with_columns("events", stack=stack).with_tables(stacks=known.table()), frames=known.frames)


def with_lines(trace: Trace) -> Trace:
    """Lines of events without a line of their own, derived from other events, and lines of memory.

    While a call runs something without lines, the caller's line stays the same: what is inside states the line of the
    call, and the call gets that line. What an op does is on the op's line. A scope, and a Python function that an op
    calls, can run on other lines than the one on which it began.
    """
    events = trace.events
    line, kind = events["line"].copy(), events["kind"]
    calls = Calls(events)
    call = calls.around(events["thread"], events["start_ns"])
    call[calls.rows] = calls.callers
    numbers = np.unique(events["name"][calls.rows]).tolist()
    without = np.isin(events["name"], [n for n in numbers if not has_lines(parse_frame(trace.names[n]))])
    without &= (kind == Kind.PYTHON) | (kind == Kind.MODULE)
    said = np.flatnonzero(line > 0)
    while True:
        said = said[call[said] >= 0]
        said = said[without[call[said]] & (line[call[said]] == 0)]
        if not len(said):
            break
        line[call[said]] = line[said]
        said = call[said]

    def told(row: np.ndarray, inside: np.ndarray, known: np.ndarray) -> np.ndarray:
        """The line of what happens in an event and in a call, if either knows it."""
        in_op = (row >= 0) & known[row] & (call[row] == inside)
        in_call = (inside >= 0) & without[inside]
        return np.where(in_op, line[row], np.where(in_call, line[inside], 0)).astype(np.int32)

    if len(events["line"]):
        scope = (kind == Kind.SCOPE) | (kind == Kind.STEP)
        around = nearest(events["parent"], scope | (line > 0))
        line = np.where(line != 0, line, told(around, call, ~scope))
        if trace.has("memory"):
            inside = calls.around(trace.memory["thread"], trace.memory["time_ns"])
            trace = trace.with_columns("memory", line=told(trace.memory["row"], inside, ~scope))
    return trace.with_columns("events", line=line)


def completed(trace: Trace, *, with_stack: bool) -> Trace:
    """A recording with the facts that follow from the whole: lines, modules and stacks of events."""
    if with_stack:
        trace = with_lines(trace)
    if trace.has("module_calls"):
        trace = with_modules(trace)
    return with_stacks(trace) if with_stack else trace
