"""The chain of work that the end of the recording waited for.

From the last moment backwards: a kernel waits for the one before it on its stream or for the host's call that launched
it, whichever ended later; a synchronising call waits for the last kernel that ended during it; everything else on the
host waits for what its thread did before. On a trace of the CPU alone, the path is that of the thread of the steps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...schema import PYTHON_KINDS, Kind
from ...tables.nesting import enclosing_rows
from ...tables.tree import lifted
from ..intervals import covered, union
from .waits import sync_rows

if TYPE_CHECKING:
    from ..analysis import Analysis

NO_EVENT = "(outside of events)"
QUEUE = "(launched, not started)"


@dataclass(frozen=True)
class Segment:
    """A stretch of the path; `lane` is "host" or a device."""

    lane: str
    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class PathShare:
    """The part of the path in events of one name."""

    lane: str
    name: str
    time_ns: int
    share: float


@dataclass(frozen=True)
class CriticalPath:
    """The path in order of time, and its time by lane and by name."""

    total_ns: int
    by_lane_ns: dict[str, int]
    by_name: list[PathShare]
    segments: list[Segment]

    def to_dict(self) -> dict[str, Any]:
        """The totals, and the number of segments."""
        return {"total_ns": self.total_ns, "by_lane_ns": self.by_lane_ns, "segments": len(self.segments),
                "by_name": [asdict(row) for row in self.by_name]}


def critical_path(analysis: Analysis) -> CriticalPath:
    """The path of the whole recording."""
    trace, events = analysis.trace, analysis.trace.events
    if not len(trace):
        return CriticalPath(0, {}, [], [])
    start, end = events["start_ns"], events["end_ns"]
    main = analysis.steps.thread
    host_rows = np.flatnonzero((events["thread"] == main) & ~np.isin(events["kind"], PYTHON_KINDS))
    begin = int(start[host_rows].min()) if len(host_rows) else int(start.min())
    devices = analysis.device_work
    lane_of = [0] * len(trace)
    for number, work in enumerate(devices):
        for row in work.rows.tolist():
            lane_of[row] = number
    launch = analysis.launch
    # On each stream, the work before a piece of work.
    before = np.full(len(trace), -1, np.int64)
    rows = np.sort(np.concatenate([work.rows for work in devices])) if devices else np.zeros(0, np.int64)
    same = events["thread"][rows[1:]] == events["thread"][rows[:-1]] if len(rows) else np.zeros(0, bool)
    before[rows[1:][same]] = rows[:-1][same]
    ended = rows[np.argsort(end[rows], kind="stable")]
    ends = end[ended]
    syncs = sync_rows(analysis)
    syncs = syncs[events["thread"][syncs] == main]
    sync_ends, sync_starts = end[syncs], start[syncs]
    order = np.argsort(sync_ends, kind="stable")
    sync_ends, sync_starts = sync_ends[order], sync_starts[order]

    pieces: list[tuple[str, int, int, int]] = []  # lane, row or -1, start, end; latest first
    host_until = int(end[host_rows].max()) if len(host_rows) else begin
    row = int(ended[-1]) if len(ended) and int(ends[-1]) > host_until else -1
    time = int(end[row]) if row >= 0 else host_until
    # As lists: reading single numbers from them is several times as fast as from columns.
    starts, stops, befores, launches = (column.tolist() for column in (start, end, before, launch))
    while time > begin:
        if row >= 0:  # on a device
            lane = devices[lane_of[row]].device
            pieces.append((lane, row, starts[row], time))
            time = starts[row]
            earlier, call = befores[row], launches[row]
            if earlier < 0 and call < 0:
                break
            queued = stops[earlier] if earlier >= 0 else -(1 << 62)
            launched = stops[call] if call >= 0 else -(1 << 62)
            came = min(max(queued, launched), time)
            if came < time:
                pieces.append((lane, -1, came, time))
                time = came
            row = earlier if queued >= launched else -1
            continue
        jump = _waited_for(time, sync_starts, sync_ends, ends, ended)
        if jump < 0:
            pieces.append(("host", -1, begin, time))
            break
        if stops[jump] < time:
            pieces.append(("host", -1, stops[jump], time))
        time, row = stops[jump], jump
    return _summary(analysis, pieces[::-1], host_rows)


def _waited_for(time: int, sync_starts: np.ndarray, sync_ends: np.ndarray, ends: np.ndarray, ended: np.ndarray) -> int:
    """The device work that ended last during the last synchronising call before a time, or -1."""
    at = int(np.searchsorted(sync_ends, time, "right")) - 1
    while at >= 0:
        last = int(np.searchsorted(ends, sync_ends[at], "right")) - 1
        if last >= 0 and ends[last] > sync_starts[at]:
            return int(ended[last])
        at -= 1
    return -1


def _summary(analysis: Analysis, pieces: list[tuple[str, int, int, int]], host_rows: np.ndarray) -> CriticalPath:
    trace, events = analysis.trace, analysis.trace.events
    total = sum(high - low for _, _, low, high in pieces)
    by_lane: dict[str, int] = {}
    by_name: dict[tuple[str, str], int] = {}
    segments = []
    windows = []
    for lane, row, low, high in pieces:
        by_lane[lane] = by_lane.get(lane, 0) + high - low
        if lane == "host":
            windows.append((low, high))
            segments.append(Segment(lane, "", low, high))
            continue
        name = trace.names[events["name"][row]] if row >= 0 else QUEUE
        by_name[lane, name] = by_name.get((lane, name), 0) + high - low
        segments.append(Segment(lane, name, low, high))
    for name, time in _host_times(analysis, host_rows, windows).items():
        by_name["host", name] = time
    shares = [PathShare(lane, name, time, time / total if total else 0.0) for (lane, name), time in by_name.items()
              if time]
    return CriticalPath(total, by_lane, sorted(shares, key=lambda row: -row.time_ns), segments)


def _host_times(analysis: Analysis, rows: np.ndarray, windows: list[tuple[int, int]]) -> dict[str, int]:
    """The time of the innermost event of the thread, by name, within some windows."""
    if not windows:
        return {}
    trace, events = analysis.trace, analysis.trace.events
    rows = rows[events["kind"][rows] != Kind.STEP]
    kept = np.zeros(len(trace), bool)
    kept[rows] = True
    parent = lifted(events["parent"], kept)[rows]
    table = {key: events[key][rows] for key in ("thread", "start_ns", "end_ns")}
    table["parent"] = np.where(parent >= 0, np.searchsorted(rows, parent), -1).astype(np.int32)
    low, high = (np.array(column, np.int64) for column in zip(*windows))
    # Boundaries of events cut the windows into stretches; in each stretch one event is innermost.
    cuts = np.unique(np.concatenate((table["start_ns"], table["end_ns"], low, high)))
    middle = (cuts[:-1] + cuts[1:]) // 2
    width = covered(union(low, high), cuts[:-1], cuts[1:])
    some = width > 0
    found = enclosing_rows(table, np.full(int(some.sum()), analysis.steps.thread, np.int32), middle[some])
    name = np.append(events["name"][rows], -1)[found]
    sums = np.bincount(name + 1, width[some], minlength=1)
    return {trace.names[number - 1] if number else NO_EVENT: int(sums[number])
            for number in np.flatnonzero(sums).tolist()}
