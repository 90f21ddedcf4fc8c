"""How well device times fit the host's: each device has its own clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..devices import device_name
from ..tables.distinct import distinct
from ..trace import Trace
from .rows import Rows


@dataclass(frozen=True)
class ClockRow:
    """The clock of a device. Its events may be off by `error_us` compared with the host's."""

    device: str
    comparisons: int
    error_us: float  # the largest error of all comparisons
    offset_us: float  # the device's clock minus the host's, at the first one
    drift_ppm: float  # how much faster the device's clock ran, in millionths


def clocks(trace: Trace) -> Rows[ClockRow]:
    """A row per device."""
    table = trace.clocks
    devices = np.stack([table["device"], table["device_index"]])
    rows = []
    for kind, index in devices[:, distinct(devices)[1]].T.tolist():
        here = np.flatnonzero((devices[0] == kind) & (devices[1] == index))
        host, device = table["time_ns"][here].tolist(), table["device_ns"][here].tolist()
        passed = host[-1] - host[0]
        drift = ((device[-1] - device[0]) / passed - 1) * 1e6 if passed else 0.0
        rows.append(ClockRow(device_name(kind, index), len(here), int(table["error_ns"][here].max()) / 1000,
                             (device[0] - host[0]) / 1000, round(drift, 6)))
    return Rows(ClockRow, rows)
