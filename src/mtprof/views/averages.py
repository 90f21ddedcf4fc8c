"""Averages directly from columns: the same rows as grouping the event objects, without making these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..devices import DeviceType
from ..trace import Columns, Trace
from . import arguments
from .device_notes import device_notes
from .event_list import EventList
from .function_event_avg import FunctionEventAvg
from .trace_events import Lazy, TraceEvent, event_at
from .trace_view import ShownNames, TraceView, outermost_first_uses

_DEVICE_COUNT = 1 + max(DeviceType)
_CHUNK_ROWS = 1 << 16


# Summed over chunks; times stay in nanoseconds until the end.
_TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")
_SUMS = ("count", *_TIMES, "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage",
         "self_device_memory_usage", "flops")
_KEYS = ("key", "device_type", "is_user_annotation", "overload_name", "input_shapes", "module")


class _Whole:
    """The view of a whole trace, made when a row is asked for its first event."""

    def __init__(self, trace: Trace, **options: Any) -> None:
        self._trace, self._options = trace, options

    @cached_property
    def view(self) -> TraceView:
        return TraceView(self._trace, **self._options)


class TraceAverage(FunctionEventAvg):
    """A row whose first event, with its parent and children, is made only on demand."""

    _whole: _Whole
    _first: tuple[int, int]  # its row, and its position in the list of events

    def __init__(self, whole: _Whole, first: tuple[int, int], fields: dict[str, Any]) -> None:
        super().__init__()
        del self.cpu_parent, self.cpu_children  # uncovers the two properties below
        self.__dict__.update(fields, _whole=whole, _first=first)

    def _event(self) -> TraceEvent:
        """The first event: by its row in the trace, or by its position if it is a change of memory."""
        view, (row, position) = self._whole.view, self._first
        return event_at(view, int(view.position[row]) if row >= 0 else position)

    cpu_parent = Lazy(lambda row: row._event().cpu_parent)
    cpu_children = Lazy(lambda row: row._event().cpu_children)


def averages_of(trace: Trace, *, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                group_by_overload_name: bool = False, group_by_module: bool = False, use_device: str | None = None,
                profile_memory: bool = False, with_flops: bool = False) -> EventList:
    """One FunctionEventAvg per group, in the order in which groups first appear.

    Events belong together if name, device type and annotation agree; if asked, also input shapes, overload and the
    innermost `group_by_stack_n` stack entries. With `group_by_module`, which PyTorch does not have, a row belongs to
    one module, and its `module` is that module's path, or None. If events of one name are nested, the totals of both
    count. A large trace is processed in independent pieces, so that the data stay in the cache.
    """
    options: dict[str, Any] = {"use_device": use_device, "profile_memory": profile_memory}
    whole = _Whole(trace, **options)
    grouping: dict[str, Any] = {"by_shapes": group_by_input_shapes, "stack_n": group_by_stack_n,
                                "by_overload": group_by_overload_name, "by_module": group_by_module}
    alone = not group_by_stack_n and not profile_memory  # a piece has everything it needs, except for work on devices
    if len(trace) > 2 * _CHUNK_ROWS and alone and not trace.events["device"].any():
        names = ShownNames(trace.names)
        columns = _merged([_columns(TraceView(piece, names=names, **options), low, **grouping)
                           for low, piece in pieces(trace)])
    else:
        columns = _columns(whole.view, 0, **grouping)
    same = {"node_id": -1, "use_device": use_device}
    first = columns.pop("first")
    columns.pop("when")
    columns |= {name: [value / 1000 for value in columns[name]] for name in _TIMES}
    if not group_by_module:
        del columns["module"]
    rows = [TraceAverage(whole, place, same | dict(zip(columns, values, strict=True)))
            for place, *values in zip(first, *columns.values(), strict=True)]
    averages = EventList(rows, use_device=use_device, profile_memory=profile_memory, with_flops=with_flops)
    averages._dropped, averages._notes = trace.dropped, device_notes(trace)
    prepared = outermost_first_uses(trace)
    if len(prepared):
        averages._prepared = (float(trace.duration_ns[prepared].sum()) / 1000, len(prepared))
    if "profiler_overhead_us" in trace.metadata:
        averages._overhead = (float(trace.metadata["profiler_overhead_us"]), (trace.end_ns - trace.start_ns) / 1000,
                              trace.metadata.get("profiler_recorder") == "python")
    return averages


def _columns(view: TraceView, low: int, *, by_shapes: bool, stack_n: int, by_overload: bool,
             by_module: bool) -> dict[str, list[Any]]:
    """Columns of the averages of a view, whose first row has the number `low` in the whole trace."""
    trace = view.trace
    inputs = view.column("inputs", -1) if by_shapes else None
    stack = view.stack if stack_n > 0 else None
    overload = view.column("overload", 0) if by_overload else None
    group = _combined(view.name, view.device.astype(np.int64) * 2 + view.is_annotation, 2 * _DEVICE_COUNT)
    if overload is not None:
        group = _combined(group, overload, len(trace.names))
    if inputs is not None:
        group = _combined(group, *_classes(
            inputs, len(trace.inputs), lambda index: str(arguments.shapes(view.arguments(index)))))
    if stack is not None:
        group = _combined(group, *_classes(
            stack, len(trace.optional("stacks")["frame"]), lambda index: tuple(view.stack_entries(index)[:stack_n])))
    module = view.column("module", -1) if by_module else None
    if module is not None:
        group = _combined(group, module + 1, len(trace.names) + 1)
    first, group = _by_first_appearance(group)

    def total(column: np.ndarray) -> list[int]:
        if not column.any():
            return nothing
        # bincount adds floats. Split in two parts, they stay exact for half a billion events of any realistic size.
        low, high = column & 0xFFFFFF, column >> 24
        sums = np.bincount(group, low, len(first)).astype(np.int64)
        return (sums + (np.bincount(group, high, len(first)).astype(np.int64) << 24) if high.any() else sums).tolist()

    row = view.row[first]
    nothing = [0] * len(first)
    on_devices = bool(view.device.any())
    return {
        "first": list(zip(np.where(row >= 0, row + low, -1).tolist(), first.tolist())),
        "when": list(zip(view.start_ns[first].tolist(), (-view.end_ns[first]).tolist(), (row + low).tolist())),
        "key": [view.names[index] for index in view.name[first].tolist()],
        "count": np.bincount(group, minlength=len(first)).tolist(),
        "cpu_time_total": total(view.cpu_ns),
        "self_cpu_time_total": total(view.self_cpu_ns),
        "device_time_total": total(view.device_ns) if on_devices else nothing,
        "self_device_time_total": total(view.self_device_ns) if on_devices else nothing,
        "cpu_memory_usage": total(view.cpu_bytes) if view.profile_memory else nothing,
        "self_cpu_memory_usage": total(view.self_cpu_bytes) if view.profile_memory else nothing,
        "device_memory_usage": total(view.device_bytes) if view.profile_memory else nothing,
        "self_device_memory_usage": total(view.self_device_bytes) if view.profile_memory else nothing,
        "flops": total(np.maximum(view.column("flops", 0), 0)),
        "scope": view.scope[first].tolist(),
        "device_type": [DeviceType(number) for number in view.device[first].tolist()],
        "is_user_annotation": view.is_annotation[first].tolist(),
        "overload_name": _texts(overload, first, trace.names.__getitem__),
        "input_shapes": _texts(inputs, first, lambda index: arguments.shapes(view.arguments(index))),
        "stack": [[] for _ in first] if stack is None else [
            view.stack_entries(index)[:stack_n] for index in stack[first].tolist()],
        "module": [None] * len(first) if module is None else [
            trace.names[index] if index >= 0 else None for index in module[first].tolist()],
    }


def _merged(parts: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """The averages of several parts as one, in the order in which groups first appear."""
    numbers: dict[Hashable, int] = {}
    first: list[tuple[Any, dict[str, list[Any]], int]] = []  # per group: when it appears, and where in which part
    places = []
    for part in parts:
        keys = zip(*(map(str, part[name]) if name == "input_shapes" else part[name] for name in _KEYS))
        place = [numbers.setdefault(key, len(numbers)) for key in keys]
        for row, (number, when) in enumerate(zip(place, part["when"])):
            if number == len(first):
                first.append((when, part, row))
            elif when < first[number][0]:
                first[number] = (when, part, row)
        places.append(place)
    order = sorted(range(len(first)), key=lambda number: first[number][0])
    result = {name: [part[name][row] for _, part, row in map(first.__getitem__, order)] for name in parts[0]}
    for name in _SUMS:
        sums = np.zeros(len(first), np.int64)
        for part, place in zip(parts, places):
            np.add.at(sums, place, part[name])
        result[name] = sums[order].tolist()
    return result


def pieces(trace: Trace) -> Iterator[tuple[int, Trace]]:
    """Stretches of a trace's events in which every event is complete with all that it contains, and the start of
    each."""
    events = trace.events
    count, low = len(trace), 0
    while low < count:
        high = _cut(events, low, min(low + _CHUNK_ROWS, count))
        yield low, replace(trace, tables={"events": _Stretch(events, low, high)})
        low = high


class _Stretch(Mapping[str, np.ndarray]):
    """Rows of events that contain their parents, as a table; a file's columns are read on first use."""

    def __init__(self, events: Columns, low: int, high: int) -> None:
        self._events, self._low, self._high = events, low, high

    def __getitem__(self, name: str) -> np.ndarray:
        part = self._events[name][self._low:self._high]
        return np.where(part >= 0, part - np.int32(self._low), part) if name == "parent" and self._low else part

    def __iter__(self) -> Iterator[str]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)


def _cut(events: Columns, low: int, high: int) -> int:
    """The first place from `high` on at which no event is open on its thread."""
    start, end, thread = events["start_ns"], events["end_ns"], events["thread"]
    count = len(start)
    while high < count:
        begin = max(low, int(np.searchsorted(thread, thread[high - 1])))
        window = slice(high, min(high + _CHUNK_ROWS, count))
        before = np.maximum.accumulate(np.concatenate(([end[begin:high].max()], end[window])))[:-1]
        apart = (before < start[window]) | (thread[window] != thread[high - 1])
        if apart.any():
            return high + int(np.argmax(apart))
        high = window.stop
    return count


def _texts(column: np.ndarray | None, first: np.ndarray, read: Callable[[int], Any]) -> list[Any]:
    """The values of a group's first event; empty strings for what was not grouped by."""
    return [""] * len(first) if column is None else [read(index) for index in column[first].tolist()]


def _classes(column: np.ndarray, table_length: int, value: Callable[[int], Hashable]) -> tuple[np.ndarray, int]:
    """Number the values behind a column of table indices (-1: none), equal values alike; returns also the count."""
    numbers: dict[Hashable, int] = {}
    # The last entry is that of -1.
    lookup = np.array([numbers.setdefault(value(index), len(numbers)) for index in [*range(table_length), -1]])
    return lookup[column], len(numbers)


def _combined(group: np.ndarray, column: np.ndarray, size: int) -> np.ndarray:
    """One number for a pair; numbers are made dense first if they would get large."""
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
    first_of[group[::-1]] = np.arange(count - 1, -1, -1)  # for repeated indices the last assignment stays
    used = np.flatnonzero(first_of < count)
    used = used[np.argsort(first_of[used])]
    number = np.zeros(size, np.int64)
    number[used] = np.arange(len(used))
    return first_of[used], number[group]
