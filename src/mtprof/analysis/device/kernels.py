"""Device work by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .work import Work

if TYPE_CHECKING:
    from ..analysis import Analysis


@dataclass(frozen=True)
class KernelRow:
    """All work of one name on one device; times in nanoseconds."""

    device: str
    name: str
    work: str  # "computation", "communication", "memory"
    count: int
    total_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    deviation_ns: float
    share: float  # of the times of all work of the device

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def kernel_breakdown(analysis: Analysis) -> list[KernelRow]:
    """A row per name and device, the longest total first."""
    trace, events = analysis.trace, analysis.trace.events
    rows: list[KernelRow] = []
    for own in analysis.device_work:
        elapsed = trace.duration_ns[own.rows].astype(np.float64)
        names, first, group = np.unique(events["name"][own.rows], return_index=True, return_inverse=True)
        group = group.reshape(-1)
        count = np.bincount(group)
        total = np.bincount(group, elapsed)
        mean = total / count
        deviation = np.sqrt(np.bincount(group, (elapsed - mean[group]) ** 2) / count)
        low, high = np.full(len(names), np.inf), np.zeros(len(names))
        np.minimum.at(low, group, elapsed)
        np.maximum.at(high, group, elapsed)
        everything = total.sum() or 1.0
        rows += [KernelRow(own.device, trace.names[name], Work(int(own.work[at])).name.lower(), int(n), int(t),
                           float(m), int(lo),
                           int(hi), float(d), float(t / everything))
                 for name, at, n, t, m, lo, hi, d in zip(names, first, count, total, mean, low, high, deviation)]
    return sorted(rows, key=lambda row: -row.total_ns)
