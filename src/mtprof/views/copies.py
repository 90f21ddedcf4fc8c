"""Copies to, from and on devices, by device and direction: bytes, time and speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..devices import device_name
from ..schema import Direction, Kind
from ..tables.distinct import distinct
from ..trace import Trace
from .rows import Rows


@dataclass(frozen=True)
class CopyRow:
    """All copies of one direction on one device; "fill" stands for memory that was set to a value."""

    device: str
    direction: str
    count: int
    size_bytes: int
    time_us: float

    @property
    def gb_per_s(self) -> float:
        """Bytes over time, in 10⁹ bytes a second."""
        return self.size_bytes / (self.time_us * 1000) if self.time_us else 0.0


def copies(trace: Trace) -> Rows[CopyRow]:
    """A row per device and direction, the longest total first.

    >>> from mtprof.builder import TraceBuilder
    >>> from mtprof.trace import ThreadInfo
    >>> build = TraceBuilder()
    >>> stream = build.thread(ThreadInfo(pid=0, tid=7))
    >>> build.add(name="Memcpy HtoD", kind=Kind.COPY, start_ns=0, end_ns=1000, thread=stream, device=20, device_index=0)
    >>> build.add_row("copies", row=0, size_bytes=4000, direction=Direction.HOST_TO_DEVICE)
    >>> print(copies(build.finish()))
    device       direction  count  size_bytes  time_us  gb_per_s
    npu:0   host_to_device      1        4000    1.000     4.000
    """
    table, events = trace.copies, trace.events
    row = table["row"]
    filled = events["kind"][row] == Kind.FILL
    keys = [events["device"][row], events["device_index"][row],
            np.where(filled, -1, table["direction"].astype(np.int64))]
    which, first = distinct(keys)
    count, size, took = np.zeros((3, len(first)), np.int64)
    np.add.at(count, which, 1)
    np.add.at(size, which, table["size_bytes"])
    np.add.at(took, which, trace.duration_ns[row])
    rows = [CopyRow(device_name(kind, index), "fill" if way < 0 else Direction(way).name.lower(), number, total,
                    ns / 1000)
            for kind, index, way, number, total, ns in zip(*(key[first].tolist() for key in keys), count.tolist(),
                                                            size.tolist(), took.tolist())]
    return Rows(CopyRow, sorted(rows, key=lambda one: -one.time_us), ("gb_per_s",))
