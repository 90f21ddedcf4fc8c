"""Stretches in which a device was idle, by what the host did meanwhile."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...schema import Kind
from ..intervals import Intervals, gaps, intersection, length, union
from ..places import Place
from ..steps import LOADER
from .waits import sync_rows
from .work import DeviceWork

if TYPE_CHECKING:
    from ..analysis import Analysis

CAUSES = ("data", "synchronisation", "host", "kernel")


@dataclass(frozen=True)
class IdleTime:
    """Idle time of a device in a stretch of time."""

    device: str
    total_ns: int
    idle_ns: int
    gaps: int
    longest_ns: int
    by_cause_ns: dict[str, int]  # words of CAUSES; they add up to `idle_ns`
    place: Place | None  # what the host ran before the work that ended most of the idle time

    @property
    def idle_share(self) -> float:
        """From 0 to 1."""
        return self.idle_ns / self.total_ns if self.total_ns else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {**asdict(self), "place": str(self.place) if self.place else None, "idle_share": self.idle_share}


def idle_times(analysis: Analysis, window: tuple[int, int] | None = None) -> list[IdleTime]:
    """The idle time of each device, between its first work and its last or in a window of time.

    Of several causes, the first counts: the work that ends the gap was already launched (kernel), the host is in the
    loader (data), in a synchronising call (synchronisation), or does anything else (host).
    """
    return [_of(analysis, work, window) for work in analysis.device_work]


def _of(analysis: Analysis, own: DeviceWork, window: tuple[int, int] | None) -> IdleTime:
    trace, events = analysis.trace, analysis.trace.events
    start, end = events["start_ns"][own.rows], events["end_ns"][own.rows]
    low, high = window or (int(start.min()), int(end.max()))
    free = gaps(union(start, end), low, high)
    idle = length(free)
    # The work that ends a gap, and when the host had launched it.
    ends_gap = np.searchsorted(start, free[1], "left")
    launch = analysis.launch[own.rows[np.minimum(ends_gap, len(own.rows) - 1)]]
    launched = np.where(launch >= 0, np.append(events["end_ns"], 0)[launch], free[1])
    split = np.clip(launched, free[0], free[1])
    queued = int((free[1] - split).sum())
    waiting: Intervals = (free[0], split)
    waiting = (waiting[0][split > free[0]], waiting[1][split > free[0]])
    loader = np.array([name.startswith(LOADER) for name in trace.names], bool)[events["name"]]
    loads = np.flatnonzero(loader & (events["kind"] == Kind.SCOPE) & (events["device"] == 0))
    data = union(events["start_ns"][loads], events["end_ns"][loads])
    syncs = sync_rows(analysis)
    both = union(np.concatenate((data[0], events["start_ns"][syncs])), np.concatenate((data[1],
                                                                                       events["end_ns"][syncs])))
    in_data = length(intersection(waiting, data)) if len(waiting[0]) else 0
    in_either = length(intersection(waiting, both)) if len(waiting[0]) else 0
    causes = {"data": in_data, "synchronisation": in_either - in_data, "host": length(waiting) - in_either,
              "kernel": queued}
    known = launch >= 0
    place = analysis.places.of_rows(launch[known], (free[1] - free[0])[known].astype(float)) if known.any() else None
    longest = int((free[1] - free[0]).max(initial=0))
    return IdleTime(own.device, high - low, idle, len(free[0]), longest, causes, place)
