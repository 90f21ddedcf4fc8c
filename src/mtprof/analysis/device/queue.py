"""How much launched work waited for a device."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..analysis import Analysis


@dataclass(frozen=True)
class QueueLength:
    """Work on one stream that was launched but had not started; lengths are weighted by time."""

    device: str
    stream: int
    launches: int
    mean: float
    median: float
    max: int
    empty_share: float  # of the time from the first launch to the last start

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def queue_series(analysis: Analysis, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times, and the number of waiting rows from each time on; `rows` is device work with a known launch."""
    events = analysis.trace.events
    launch = analysis.launch[rows]
    time = np.concatenate((events["start_ns"][launch], events["start_ns"][rows]))
    change = np.repeat([1, -1], [len(rows), len(rows)])
    order = np.lexsort((-change, time))
    return time[order], np.cumsum(change[order])


def queue_lengths(analysis: Analysis) -> list[QueueLength]:
    """Per device and stream."""
    events, threads = analysis.trace.events, analysis.trace.threads
    launch = analysis.launch
    found = []
    for own in analysis.device_work:
        linked = own.rows[launch[own.rows] >= 0]
        for thread in np.unique(events["thread"][linked]).tolist():
            rows = linked[events["thread"][linked] == thread]
            time, waiting = queue_series(analysis, rows)
            held = np.diff(time)
            total = int(held.sum())
            length = waiting[:-1]
            if total:
                order = np.argsort(length, kind="stable")
                middle = np.searchsorted(np.cumsum(held[order]), total / 2)
                mean, median = float((length * held).sum() / total), float(length[order[middle]])
                empty = float(held[length == 0].sum() / total)
            else:
                mean = median = empty = 0.0
            found.append(QueueLength(own.device, threads[thread].tid, len(rows), mean, median, int(waiting.max()),
                                     empty))
    return found
