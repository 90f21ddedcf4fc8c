"""The parts of each training step's time: data, forward, backward, optimizer, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..names import step_number
from ..own_metadata import STEP_STARTS
from ..schema import PYTHON_KINDS, Kind
from ..trace import Trace
from .formatting import _format_time

PARTS = ("data", "forward", "backward", "optimizer", "other")

Windows = tuple[np.ndarray, np.ndarray, np.ndarray, int]  # number, start and end of steps, and the thread they run on

_DATA = "enumerate(DataLoader)#"
_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")


@dataclass(frozen=True)
class StepRow:
    """A step; times in microseconds. The parts do not overlap and add up to `wall_us`."""

    step: int
    wall_us: float
    data_us: float
    forward_us: float
    backward_us: float
    optimizer_us: float
    other_us: float
    ops: int

    def part_us(self, part: str) -> float:
        """The time of a part by its name."""
        return getattr(self, f"{part}_us")

    @property
    def fractions(self) -> dict[str, float]:
        """Each part's share of the step, from 0 to 1; all 0 for a step that took no time."""
        return {part: self.part_us(part) / self.wall_us if self.wall_us else 0.0 for part in PARTS}

    def to_dict(self) -> dict[str, Any]:
        """All fields and the fractions, as plain values."""
        return {**asdict(self), "fractions": self.fractions}


class StepSummary(Sequence[StepRow]):
    """A row per step, and totals; prints as a table.

    >>> from mtprof.schema import Kind
    >>> from mtprof.builder import TraceBuilder
    >>> from mtprof.trace import ThreadInfo
    >>> build = TraceBuilder()
    >>> main = build.thread(ThreadInfo(pid=1, tid=1))
    >>> build.add(name="ProfilerStep#7", kind=Kind.STEP, start_ns=0, end_ns=100_000, thread=main)
    >>> build.add(name="enumerate(DataLoader)#X.__next__", kind=Kind.SCOPE, start_ns=0, end_ns=60_000, thread=main)
    >>> build.add(name="aten::add", kind=Kind.OP, start_ns=70_000, end_ns=90_000, thread=main)
    >>> print(step_summary(build.finish(start_ns=0, end_ns=100_000)))
     Step        Wall             data          forward         backward        optimizer            other   Ops
        7   100.000us  60.000us  60.0%  20.000us  20.0%   0.000us   0.0%   0.000us   0.0%  20.000us  20.0%     1
    Total   100.000us  60.000us  60.0%  20.000us  20.0%   0.000us   0.0%   0.000us   0.0%  20.000us  20.0%     1
    """

    def __init__(self, rows: Sequence[StepRow]) -> None:
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[StepRow]:
        return iter(self.rows)

    @property
    def totals(self) -> StepRow:
        """The sums over all steps; its `step` is the number of steps."""
        sums = {name: sum(getattr(row, name) for row in self.rows)
                for name in ("wall_us", *(f"{part}_us" for part in PARTS), "ops")}
        return StepRow(step=len(self.rows), **sums)

    @property
    def stalls(self) -> list[float]:
        """Microseconds that each step spent in the loader's `__next__`: with workers waiting, without them loading."""
        return [row.data_us for row in self.rows]

    def to_dict(self) -> list[dict[str, Any]]:
        """A dictionary of plain values per step."""
        return [row.to_dict() for row in self.rows]

    def table(self) -> str:
        """The rows and their total as text."""
        width = max(6, len(str(self.totals.ops)) + 2)
        lines = [f"{'Step':>5}{'Wall':>12}" + "".join(f"{part:>17}" for part in PARTS) + f"{'Ops':>{width}}"]
        for label, row in [*((str(row.step), row) for row in self.rows), ("Total", self.totals)]:
            shares = row.fractions
            cells = "".join(f"{_format_time(row.part_us(part)):>10}{100 * shares[part]:>6.1f}%" for part in PARTS)
            lines.append(f"{label:>5}{_format_time(row.wall_us):>12}{cells}{row.ops:>{width}}")
        return "\n".join(lines)

    __str__ = table

    def __repr__(self) -> str:
        return f"<StepSummary of {len(self.rows)} steps>"

    def _repr_html_(self) -> str:
        from ..notebook import reprs

        return reprs.step_summary(self)


def step_summary(trace: Trace, windows: Windows | None = None) -> StepSummary:
    """Split the time of each step.

    Steps are the `windows`, if given; otherwise the `ProfilerStep#` events; without those, the stretches between calls
    of `step()`, from the start to the end of the recording. Only events on the thread of the steps count (without such
    events, on the thread with most events of the process that was recorded first). A moment belongs to the first part
    that covers it:

    - data: `enumerate(DataLoader)#...` scopes
    - backward: `autograd::engine::evaluate_function` events, on other threads of the process if that one has none
    - optimizer: `Optimizer.step#` and `Optimizer.zero_grad#` scopes
    - forward: ops and calls of modules that began before the last backward event of the step, or all if it has none
    - other: the rest, such as Python between ops, ops after the backward, or waiting

    A user's scope is not a part by itself; what runs in it is.
    """
    events = trace.events
    number, low, high, thread = stated_windows(trace) if windows is None else windows
    here = events["thread"] == thread
    start, end, kind = events["start_ns"], events["end_ns"], events["kind"]
    scope = here & (kind == Kind.SCOPE)
    called = np.array([name.startswith(_DATA) + 2 * name.startswith(_OPTIMIZER) for name in trace.names], np.int8)
    called = called[events["name"]]
    backward = (kind == Kind.BACKWARD) & here
    if not backward.any():
        pids = np.array([info.pid for info in trace.threads], np.int64)
        backward = (kind == Kind.BACKWARD) & (pids[events["thread"]] == pids[thread]) if len(pids) else backward
    ops = here & (kind == Kind.OP)
    forward = (ops | (here & (kind == Kind.MODULE))) & _before_last(start, backward, low, high)
    groups = {"data": scope & (called == 1), "backward": backward, "optimizer": scope & (called == 2),
              "forward": forward}
    covered = np.zeros(len(low), np.int64)
    everything = np.zeros(len(start), bool)
    parts: dict[str, np.ndarray] = {}
    for part, rows in groups.items():
        # What this part covers beyond those before it: differences of growing unions are disjoint, and not negative.
        everything |= rows
        now = _covered(start[everything], end[everything], low, high)
        parts[part], covered = now - covered, now
    wall = high - low
    parts["other"] = wall - covered
    begun = np.sort(start[ops])
    counts = np.searchsorted(begun, high) - np.searchsorted(begun, low)
    return StepSummary([
        StepRow(step, wall_ns / 1000, **{f"{part}_us": values / 1000 for part, values in zip(parts, row)}, ops=count)
        for step, wall_ns, count, *row in zip(number.tolist(), wall.tolist(), counts.tolist(),
                                              *(values.tolist() for values in parts.values()), strict=True)])


def stated_windows(trace: Trace) -> Windows:
    """The steps that the program stated; one for everything if it stated none."""
    events = trace.events
    steps = np.flatnonzero((events["kind"] == Kind.STEP) & (events["device"] == 0))
    if len(steps):
        steps = steps[np.argsort(events["start_ns"][steps], kind="stable")]
        texts = [trace.names[name] for name in events["name"][steps].tolist()]
        found = [step_number(text) for text in texts]
        number = np.array([place if known is None else known for place, known in enumerate(found)], np.int64)
        return number, events["start_ns"][steps], events["end_ns"][steps], int(events["thread"][steps[0]])
    own = trace.metadata.get("mindtorch_v2", {})
    starts = np.array(own.get(STEP_STARTS, ()), np.int64) + trace.start_ns
    bounds = np.concatenate(([trace.start_ns], starts, [max(trace.end_ns, trace.start_ns)])).astype(np.int64)
    bounds = np.maximum.accumulate(np.minimum(bounds, bounds[-1]))
    if len(starts) and not (events["start_ns"][~np.isin(events["kind"], PYTHON_KINDS)] >= starts[-1]).any():
        bounds = bounds[:-1]  # nothing ran after the last call of step(): it ended the last step and began none
    number = np.arange(len(bounds) - 1)
    return number, bounds[:-1], bounds[1:], _busiest(trace)


def _busiest(trace: Trace) -> int:
    """The thread with most events in the process of the first event; events of Python calls do not count."""
    if not trace.threads:
        return -1
    python = (trace.events["kind"] == Kind.PYTHON) | (trace.events["kind"] == Kind.MODULE)
    counts = np.bincount(trace.events["thread"][~python], minlength=len(trace.threads))
    same = np.array([info.pid == trace.threads[0].pid for info in trace.threads], bool)
    return int(np.argmax(np.where(same, counts, -1)))


def _before_last(start: np.ndarray, backward: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which events began before the last backward event of their step; all events of a step without one."""
    step = np.searchsorted(low, start, "right") - 1
    last = np.full(len(low) + 1, np.iinfo(np.int64).max, np.int64)  # one more for events before the first step
    ran = np.flatnonzero(backward & (step >= 0))
    if len(ran):
        ran = ran[start[ran] < high[step[ran]]]
        latest = np.full(len(low), -1, np.int64)
        np.maximum.at(latest, step[ran], start[ran])
        last[:-1] = np.where(latest >= 0, latest, last[:-1])
    return start < last[step]


def _covered(start: np.ndarray, end: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """How much of each window the union of some intervals covers."""
    if not len(start):
        return np.zeros(len(low), np.int64)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    opens = np.concatenate(([True], start[1:] > reached[:-1]))
    first, last = start[opens], reached[np.append(np.flatnonzero(opens)[1:] - 1, len(start) - 1)]
    length = np.concatenate(([0], np.cumsum(last - first)))

    def until(time: np.ndarray) -> np.ndarray:
        begun = np.searchsorted(first, time, "right")  # intervals that began at this time or before
        beyond = np.where(begun > 0, np.maximum(last[begun - 1] - time, 0), 0)
        return length[begun] - beyond

    return until(high) - until(low)
