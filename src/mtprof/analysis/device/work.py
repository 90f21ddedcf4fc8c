"""Rows of device work, by device and kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...codes import Code
from ...devices import device_name
from ...schema import DEVICE_KINDS, Kind

if TYPE_CHECKING:
    from ..analysis import Analysis

_COMMUNICATION = re.compile(r"nccl|hccl|hcom|rccl|gloo|c10d|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"
                            r"|broadcast_?op|send_?recv", re.IGNORECASE)


class Work(Code):
    """Kinds of device work."""

    COMPUTATION = 0
    COMMUNICATION = 1
    MEMORY = 2  # copies and fills


@dataclass(frozen=True)
class DeviceWork:
    """The work of one device: rows of the trace in order of start, and the kind of each."""

    device: str
    rows: np.ndarray
    work: np.ndarray  # values of Work


def is_communication(name: str) -> bool:
    """
    >>> is_communication("ncclDevKernel_AllReduce_Sum_f32"), is_communication("void gemm_kernel")
    (True, False)
    """
    return bool(_COMMUNICATION.search(name))


def device_work(analysis: Analysis) -> list[DeviceWork]:
    """The work of each device of each process; empty for a trace of the CPU alone."""
    trace, events = analysis.trace, analysis.trace.events
    rows = np.flatnonzero(np.isin(events["kind"], DEVICE_KINDS) & (events["device"] != 0))
    if not len(rows):
        return []
    communicates = np.array([is_communication(name) for name in trace.names], bool)
    work = np.where(np.isin(events["kind"][rows], (Kind.COPY, Kind.FILL)), Work.MEMORY,
                    np.where(communicates[events["name"][rows]], Work.COMMUNICATION, Work.COMPUTATION))
    keys = events["device"][rows].astype(np.int64) * (1 << 16) + events["device_index"][rows]
    found = []
    for key in np.unique(keys).tolist():
        here = keys == key
        own, what = rows[here], work[here]
        order = np.argsort(events["start_ns"][own], kind="stable")
        device, index = int(events["device"][own[0]]), int(events["device_index"][own[0]])
        found.append(DeviceWork(device_name(device, index), own[order], what[order]))
    return found
