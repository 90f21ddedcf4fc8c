"""How the host launched device work: cost of the call, delay until the start, length of the work."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...schema import DEVICE_KINDS, Kind

if TYPE_CHECKING:
    from ..analysis import Analysis

SHORT_CALL_NS = 50_000  # a longer launching call is an outlier
LONG_DELAY_NS = 100_000


@dataclass(frozen=True)
class LaunchStatistics:
    """Launches of one kind of work; times in nanoseconds."""

    name: str
    launches: int
    mean_call_ns: float
    mean_work_ns: float
    mean_delay_ns: float  # from the end of the call to the start of the work; negative if it started earlier
    shorter_than_call: int  # how often the work took less time than launching it
    slow_calls: int  # launching calls above 50 µs
    long_delays: int  # delays above 100 µs

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def launch_of(analysis: Analysis) -> np.ndarray:
    """For each event the row of the host's call that launched it, or -1: the same correlation, preferably a runtime
    call.
    """
    events = analysis.trace.events
    result = np.full(len(analysis.trace), -1, np.int64)
    correlation = events["correlation"]
    hosts = np.flatnonzero((correlation != 0) & (events["device"] == 0))
    work = np.flatnonzero((correlation != 0) & np.isin(events["kind"], DEVICE_KINDS))
    if not len(hosts) or not len(work):
        return result
    # Among calls of one number a runtime call comes first.
    order = np.lexsort((events["kind"][hosts] != Kind.LAUNCH, correlation[hosts]))
    keys, first = np.unique(correlation[hosts[order]], return_index=True)
    at = np.minimum(np.searchsorted(keys, correlation[work]), len(keys) - 1)
    result[work] = np.where(keys[at] == correlation[work], hosts[order[first[at]]], -1)
    return result


def launch_statistics(analysis: Analysis) -> list[LaunchStatistics]:
    """Per name of device work, the name with most launches first."""
    trace, events = analysis.trace, analysis.trace.events
    launch = analysis.launch
    work = np.flatnonzero(launch >= 0)
    if not len(work):
        return []
    call = launch[work]
    elapsed = trace.duration_ns
    delay = events["start_ns"][work] - events["end_ns"][call]
    names, group = np.unique(events["name"][work], return_inverse=True)
    group = group.reshape(-1)
    counts = np.bincount(group)

    def mean(values: np.ndarray) -> np.ndarray:
        return np.bincount(group, values) / counts

    def count(mask: np.ndarray) -> np.ndarray:
        return np.bincount(group, mask).astype(np.int64)

    columns = (counts, mean(elapsed[call]), mean(elapsed[work]), mean(delay), count(elapsed[work] < elapsed[call]),
               count(elapsed[call] > SHORT_CALL_NS), count(delay > LONG_DELAY_NS))
    rows = [LaunchStatistics(trace.names[name], *values)
            for name, *values in zip(names.tolist(), *(column.tolist() for column in columns))]
    return sorted(rows, key=lambda row: -row.launches)
