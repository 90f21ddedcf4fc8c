"""Communication between ranks, by operation and group: bytes, time and speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..devices import device_name
from ..schema import DEVICE_KINDS
from ..tables.distinct import distinct
from ..trace import Trace
from .rows import Rows

# PyTorch's names of element types -> bytes.
_BYTES = {"Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4, "Long": 8,
          "Double": 8, "ComplexHalf": 4, "ComplexFloat": 8, "ComplexDouble": 16, "UInt16": 2, "UInt32": 4, "UInt64": 8,
          "Float8_e4m3fn": 1, "Float8_e5m2": 1}


def _bus_factor(operation: str, ranks: int) -> float:
    """Bytes that pass a link per byte of the message in the best algorithms, as nccl-tests counts them."""
    if ranks < 2:
        return 1.0
    if "allreduce" in operation or "all_reduce" in operation:
        return 2 * (ranks - 1) / ranks
    gathers = ("allgather", "all_gather", "reduce_scatter", "reducescatter", "all_to_all", "alltoall")
    return (ranks - 1) / ranks if any(word in operation for word in gathers) else 1.0


@dataclass(frozen=True)
class CollectiveRow:
    """All calls of one operation in one group, by one device or by the host ("cpu")."""

    where: str
    operation: str
    group: str
    group_size: int
    dtype: str
    count: int
    size_bytes: int  # the larger of bytes sent and received; 0 if the element type is unknown
    time_us: float

    @property
    def gb_per_s(self) -> float:
        """Bytes over time, in 10⁹ bytes a second."""
        return self.size_bytes / (self.time_us * 1000) if self.time_us else 0.0

    @property
    def bus_gb_per_s(self) -> float:
        """What the links transferred: comparable with their speed, for any operation and number of ranks."""
        return self.gb_per_s * _bus_factor(self.operation.lower(), self.group_size)


def collectives(trace: Trace) -> Rows[CollectiveRow]:
    """A row per operation, group, type and place, the longest total first.

    If the trace has the device's work, the host's calls are left out: they only queue it.
    """
    table, events = trace.collectives, trace.events
    on_device = np.isin(events["kind"][table["row"]], DEVICE_KINDS)
    chosen = np.flatnonzero(on_device) if on_device.any() else np.arange(len(on_device))
    row = table["row"][chosen]
    keys = [events["device"][row], events["device_index"][row],
            *(table[name][chosen] for name in ("operation", "group", "group_size", "dtype"))]
    which, first = distinct(keys)
    count, elements, took = np.zeros((3, len(first)), np.int64)
    np.add.at(count, which, 1)
    np.add.at(elements, which, np.maximum(table["in_elements"], table["out_elements"])[chosen])
    np.add.at(took, which, trace.duration_ns[row])
    names = trace.names
    rows = [CollectiveRow(device_name(kind, index), names[operation], names[group], size, names[dtype], number,
                          total * _BYTES.get(names[dtype], 0), ns / 1000)
            for kind, index, operation, group, size, dtype, number, total, ns in zip(
                *(key[first].tolist() for key in keys), count.tolist(), elements.tolist(), took.tolist())]
    return Rows(CollectiveRow, sorted(rows, key=lambda one: -one.time_us), ("gb_per_s", "bus_gb_per_s"))
