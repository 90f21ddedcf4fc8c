"""Averages straight from columns: the same rows as grouping the event objects, without making them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..device_type import DeviceType
from ..trace import Trace
from . import arguments
from .event_list import EventList
from .function_event_avg import FunctionEventAvg
from .trace_events import Lazy, event_at
from .trace_view import TraceView

_DEVICE_COUNT = 1 + max(DeviceType)


class TraceAverage(FunctionEventAvg):
    """A row whose first event, and with it parent and children, is only made when asked for."""

    def __init__(self, view: TraceView, first: int, fields: dict[str, Any]) -> None:
        super().__init__()
        del self.cpu_parent, self.cpu_children  # uncovers the two below
        self.__dict__.update(fields, _view=view, _first=first)

    cpu_parent = Lazy(lambda row: event_at(row._view, row._first).cpu_parent)
    cpu_children = Lazy(lambda row: event_at(row._view, row._first).cpu_children)


def averages_of(trace: Trace, *, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                group_by_overload_name: bool = False, group_by_module: bool = False, use_device: str | None = None,
                profile_memory: bool = False, with_flops: bool = False) -> EventList:
    """One FunctionEventAvg per group, in the order in which groups first appear.

    Events belong together if name, device type and being an annotation agree, and input shapes, overload and the
    innermost `group_by_stack_n` stack entries where asked for. With `group_by_module`, which PyTorch does not have, a
    row is of one module, and its `module` is that module's path, or None. Totals of nested events of one name are both
    counted.
    """
    view = TraceView(trace, use_device=use_device, profile_memory=profile_memory)
    inputs = view.column("inputs", -1) if group_by_input_shapes else None
    stack = view.stack if group_by_stack_n > 0 else None
    overload = view.column("overload", 0) if group_by_overload_name else None

    group = _combined(view.name, view.device.astype(np.int64) * 2 + view.is_annotation, 2 * _DEVICE_COUNT)
    if overload is not None:
        group = _combined(group, overload, len(trace.names))
    if inputs is not None:
        group = _combined(group, *_classes(
            inputs, len(trace.inputs), lambda index: str(arguments.shapes(view.arguments(index)))))
    if stack is not None:
        group = _combined(group, *_classes(
            stack, len(trace.stacks), lambda index: tuple(view.stack_entries(index)[:group_by_stack_n])))
    module = view.column("module", -1) if group_by_module else None
    if module is not None:
        group = _combined(group, module + 1, len(trace.names) + 1)
    first, group = _by_first_appearance(group)

    def total(column: np.ndarray) -> np.ndarray:
        if not column.any():
            return np.zeros(len(first), np.int64)
        # bincount adds floats; in two parts they stay exact for half a billion events of any size that occurs.
        low, high = column & 0xFFFFFF, column >> 24
        sums = np.bincount(group, low, len(first)).astype(np.int64)
        return sums + (np.bincount(group, high, len(first)).astype(np.int64) << 24) if high.any() else sums

    columns: dict[str, Sequence[Any]] = {
        "key": [view.names[index] for index in view.name[first].tolist()],
        "count": np.bincount(group, minlength=len(first)).tolist(),
        "cpu_time_total": (total(view.cpu_ns) / 1000).tolist(),
        "self_cpu_time_total": (total(view.self_cpu_ns) / 1000).tolist(),
        "device_time_total": (total(view.device_ns) / 1000).tolist(),
        "self_device_time_total": (total(view.self_device_ns) / 1000).tolist(),
        "cpu_memory_usage": total(view.cpu_bytes).tolist(),
        "self_cpu_memory_usage": total(view.self_cpu_bytes).tolist(),
        "device_memory_usage": total(view.device_bytes).tolist(),
        "self_device_memory_usage": total(view.self_device_bytes).tolist(),
        "flops": total(np.maximum(view.column("flops", 0), 0)).tolist(),
        "scope": view.scope[first].tolist(),
        "device_type": [DeviceType(number) for number in view.device[first].tolist()],
        "is_user_annotation": view.is_annotation[first].tolist(),
        "overload_name": _texts(overload, first, trace.names.__getitem__),
        "input_shapes": _texts(inputs, first, lambda index: arguments.shapes(view.arguments(index))),
        "stack": [[] for _ in first] if stack is None else [
            view.stack_entries(index)[:group_by_stack_n] for index in stack[first].tolist()],
    }
    if module is not None:
        columns["module"] = [trace.names[index] if index >= 0 else None for index in module[first].tolist()]
    same = {"node_id": -1, "use_device": use_device}
    rows = [
        TraceAverage(view, position, same | dict(zip(columns, values, strict=True)))
        for position, *values in zip(first.tolist(), *columns.values(), strict=True)
    ]
    averages = EventList(rows, use_device=use_device, profile_memory=profile_memory, with_flops=with_flops)
    averages._dropped = trace.dropped
    if "profiler_overhead_us" in trace.metadata:
        averages._overhead = (float(trace.metadata["profiler_overhead_us"]), (trace.end_ns - trace.start_ns) / 1000,
                              trace.metadata.get("profiler_recorder") == "python")
    return averages


def _texts(column: np.ndarray | None, first: np.ndarray, read: Callable[[int], Any]) -> list[Any]:
    """What a group's first event has, or empty strings where it was not grouped by."""
    return [""] * len(first) if column is None else [read(index) for index in column[first].tolist()]


def _classes(column: np.ndarray, table_length: int, value: Callable[[int], Hashable]) -> tuple[np.ndarray, int]:
    """Number the values behind a column of table indices (-1: none), equal ones alike; and how many numbers."""
    numbers: dict[Hashable, int] = {}
    # The last entry is that of -1.
    lookup = np.array([numbers.setdefault(value(index), len(numbers)) for index in [*range(table_length), -1]])
    return lookup[column], len(numbers)


def _combined(group: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """One number for a pair; numbers are made dense first where they would get large."""
    largest = int(group.max(initial=0)) + 1
    if largest * size > 1 << 62:
        _, group = np.unique(group, return_inverse=True)
    return group.astype(np.int64) * size + column


def _by_first_appearance(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the first event of each group, in order, and each event's group numbered in that order."""
    count = len(group)
    size = int(group.max(initial=-1)) + 1
    if size > 4 * count + (1 << 20):
        _, group = np.unique(group, return_inverse=True)
        size = int(group.max(initial=-1)) + 1
    first_of = np.full(size, count, np.int64)
    first_of[group[::-1]] = np.arange(count - 1, -1, -1)  # of repeated indices the last assignment stays
    used = np.flatnonzero(first_of < count)
    used = used[np.argsort(first_of[used])]
    number = np.zeros(size, np.int64)
    number[used] = np.arange(len(used))
    return first_of[used], number[group]
