"""How long each device computed, communicated, moved memory, and was idle."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..intervals import intersection, length, union
from .work import DeviceWork, Work

if TYPE_CHECKING:
    from ..analysis import Analysis


@dataclass(frozen=True)
class TemporalBreakdown:
    """Nanoseconds of a device from its first work to its last; the four parts add up to `total_ns`.

    A moment with computation counts as computation; `communication_ns` and `memory_ns` are the exposed time only.
    `overlapped_share` is the share of communication during which the device computed as well, None without any.
    """

    device: str
    total_ns: int
    computation_ns: int
    communication_ns: int
    memory_ns: int
    idle_ns: int
    overlapped_share: float | None

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def temporal_breakdown(analysis: Analysis) -> list[TemporalBreakdown]:
    """A breakdown per device."""
    return [_of(analysis, work) for work in analysis.device_work]


def _of(analysis: Analysis, own: DeviceWork) -> TemporalBreakdown:
    events = analysis.trace.events
    start, end = events["start_ns"][own.rows], events["end_ns"][own.rows]

    def of(*kinds: Work) -> tuple[np.ndarray, np.ndarray]:
        some = np.isin(own.work, kinds)
        return union(start[some], end[some])

    computation, communication = of(Work.COMPUTATION), of(Work.COMMUNICATION)
    both = length(of(Work.COMPUTATION, Work.COMMUNICATION))
    busy = length(union(start, end))
    total = int(end.max() - start.min())
    communicating = length(communication)
    shared = length(intersection(communication, computation))
    return TemporalBreakdown(own.device, total, length(computation), both - length(computation), busy - both,
                             total - busy,
                             shared / communicating if communicating else None)
