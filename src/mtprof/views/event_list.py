"""`EventList`: a list of events or averages that can group, print and export itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ..devices import DeviceType
from ..export import event_list_chrome, stacks, tabular
from .function_event import FunctionEvent
from .function_event_avg import FunctionEventAvg
from .table import build_table

_BACKWARD_FUNCTION = 1  # PyTorch's RecordScope of a backward node's own code


class EventList(list):
    """A list of FunctionEvent or FunctionEventAvg objects; everything that works on lists works here."""

    def __init__(self, items: Iterable[Any] = (), /, *, use_device: str | None = None, profile_memory: bool = False,
                 with_flops: bool = False) -> None:
        super().__init__(items)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False
        self._dropped = 0
        self._notes: tuple[str, ...] = ()  # notes about the recording for a reader of the table
        # The cost of recording and the recorded time, in microseconds; and whether Python recorded without the C twin.
        self._overhead: tuple[float, float, bool] | None = None
        self._prepared: tuple[float, int] | None = None  # first uses of ops: microseconds, and how many

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from ..notebook import reprs

        return reprs.event_list(self)

    def _build_tree(self) -> None:
        """Link parents and children and give backward events their forward stacks."""
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """Make each CPU event a child of the innermost event on its thread whose interval contains it.

        An async event starts and ends on different threads. Nothing can be inside it, so it is left out.
        """
        by_thread: dict[tuple[int, int], list[FunctionEvent]] = {}
        for event in self:
            if event.device_type == DeviceType.CPU and not event.is_async:
                by_thread.setdefault((event.thread, event.node_id), []).append(event)
        for events in by_thread.values():
            events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
            open_events: list[FunctionEvent] = []
            for event in events:
                start, end = event.time_range.start, event.time_range.end
                while open_events and (start >= open_events[-1].time_range.end or end > open_events[-1].time_range.end):
                    open_events.pop()
                if open_events:
                    if event.cpu_parent is not None:
                        raise AssertionError(f"There is already a CPU parent event for {event.key}")
                    open_events[-1].append_cpu_child(event)
                    event.set_cpu_parent(open_events[-1])
                open_events.append(event)

    def _remove_dup_nodes(self) -> None:
        """Drop an event that only repeats its parent: same name, and the parent's only child."""
        kept = []
        # One pass is enough: a grandchild's new parent has the same name and number of children as the old one, so no
        # decision changes.
        for event in self:
            parent = event.cpu_parent
            if parent is None or parent.name != event.name or len(parent.cpu_children) != 1:
                kept.append(event)
                continue
            parent.cpu_children = event.cpu_children
            parent.kernels = event.kernels
            for child in event.cpu_children:
                child.cpu_parent = parent
        self[:] = kept

    def _set_backward_stacktraces(self) -> None:
        """Give the events in a backward function the stack of the forward op that it belongs to."""
        owner: dict[int, FunctionEvent | None] = {}  # id(event) -> the backward function it is in

        def backward_function(event: FunctionEvent) -> FunctionEvent | None:
            path = []
            node: FunctionEvent | None = event
            while node is not None and id(node) not in owner:
                path.append(node)
                if node.scope == _BACKWARD_FUNCTION:
                    owner[id(node)] = node
                    break
                node = node.cpu_parent
            found = None if node is None else owner[id(node)]
            for passed in path:
                owner[id(passed)] = found
            return found

        forward_stacks: dict[tuple[int, int], list[str]] = {}
        for event in self:
            if event.stack is not None and backward_function(event) is None:
                forward_stacks.setdefault((event.sequence_nr, event.thread), event.stack)
        for event in self:
            inside = backward_function(event)
            if inside is not None:
                if inside.fwd_thread is None:
                    raise AssertionError("Expected fwd_thread to be set for backward parent")
                event.stack = forward_stacks.get((inside.sequence_nr, inside.fwd_thread), [])

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all events, microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:
        """The list as text.

        `sort_by` names an attribute such as "cpu_time_total", "self_cpu_memory_usage" or "count", largest first.
        Without it, rows keep the order of the recording. `time_unit` ("s", "ms", "us") applies to all times.
        """
        return build_table(
            self, sort_by=sort_by, header=header, row_limit=row_limit, max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width, max_shapes_column_width=max_shapes_column_width,
            with_flops=self._with_flops, profile_memory=self._profile_memory,
            top_level_events_only=top_level_events_only, time_unit=time_unit, dropped=self._dropped,
            overhead=self._overhead, notes=self._notes, prepared=self._prepared,
        )

    def export_chrome_trace(self, path: str) -> None:
        """Write the list as a Chrome trace."""
        event_list_chrome.write(self, path, use_device=self._use_device)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The events or rows as CSV: returned, or written if a path is given. Unknown FLOPs are empty.

        >>> import mindtorch_v2 as torch
        >>> with torch.profiler.profile() as prof:
        ...     y = torch.ones(2) + 1
        >>> "aten::add" in prof.key_averages().to_csv()
        True
        """
        return tabular.to_csv(self, path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The events or rows as JSON: returned, or written if a path is given."""
        return tabular.to_json(self, path)

    def to_dataframe(self) -> Any:
        """The events or rows as a pandas DataFrame; needs the extra `analysis`."""
        return tabular.to_dataframe(self)

    def to_arrow(self) -> Any:
        """The events or rows as a pyarrow Table; needs the extra `analysis`."""
        return tabular.to_arrow(self)

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics of `export_stacks`."""
        return list(stacks.METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write stacks with their weights, in the format of flame graph tools."""
        stacks.write(self, path, metric)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:
        """Sums per name and, if asked, per input shapes, overload or the innermost stack entries."""
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        groups: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            key: list[Any] = [str(event.key), event.node_id, event.device_type, event.is_legacy,
                              event.is_user_annotation]
            if group_by_overload_name:
                key.append(event.overload_name)
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n > 0:
                key += event.stack[:group_by_stack_n]
            row = groups.get(tuple(key))
            if row is None:
                row = groups[tuple(key)] = FunctionEventAvg()
            row.add(event)
        for row in groups.values():
            row.stack = (row.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                row.input_shapes = ""
            if not group_by_overload_name:
                row.overload_name = ""
        averages = EventList(groups.values(), use_device=self._use_device, profile_memory=self._profile_memory,
                             with_flops=self._with_flops)
        averages._dropped, averages._notes = self._dropped, self._notes
        return averages

    def total_average(self) -> FunctionEventAvg:
        """One row, "Total", over all events; its fields that are not sums are those of the last event."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None  # accepts events of any name
            total.add(event)
        total.key = "Total"
        return total
