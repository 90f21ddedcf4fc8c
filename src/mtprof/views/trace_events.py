"""Events of a trace as objects that hold a position and compute an attribute on first access."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..devices import DeviceType
from ..schema import KINDS, Kind
from ..trace import Trace
from . import arguments
from .device_notes import device_notes
from .event_list import EventList
from .function_event import FunctionEvent, Interval, Kernel
from .trace_view import TraceView

_DEVICE_TYPES = {int(member): member for member in DeviceType}
# Attributes that change a total when they change.
_TIMING = frozenset({"time_range", "is_async"})
_SELF_TIMING = frozenset({*_TIMING, "cpu_children"})
_DEVICE_TIMING = frozenset({*_SELF_TIMING, "kernels", "is_legacy", "use_device"})
_CPU_MEMORY = frozenset({"cpu_children", "cpu_memory_usage", "is_async"})
_DEVICE_MEMORY = frozenset({"cpu_children", "device_memory_usage", "is_async"})


class Lazy:
    """An attribute computed on first access and then kept in the instance; assignment replaces it.

    It has no `__set__`, so a value in the instance's dictionary takes precedence and costs nothing extra to read.
    """

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute = compute

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


class TraceInterval(Interval):
    """An interval of a trace: its length is exact, not the difference of two rounded floats."""

    def __init__(self, start_ns: int, end_ns: int) -> None:
        super().__init__(start_ns / 1000, end_ns / 1000)
        self._measured = (self.start, self.end, (end_ns - start_ns) / 1000)

    def elapsed_us(self) -> float:
        """The length in microseconds."""
        start, end, length = self._measured
        return length if self.start == start and self.end == end else super().elapsed_us()


def _from_column(name: str) -> Lazy:
    return Lazy(lambda event: event._view.trace.events[name].item(event._row))


def _from_view(name: str) -> Lazy:
    return Lazy(lambda event: getattr(event._view, name).item(event._position))


def _from_arguments(form: Callable[[tuple[Any, ...]], Any]) -> Lazy:
    # There are few distinct argument lists. Events with the same list share its form, which saves the garbage collector
    # a million small lists.
    known: weakref.WeakKeyDictionary[TraceView, dict[int, Any]] = weakref.WeakKeyDictionary()

    def read(event: TraceEvent) -> Any:
        view = event._view
        index = view.trace.events["inputs"].item(event._row)
        shared = known.setdefault(view, {})
        if index not in shared:
            shared[index] = form(view.arguments(index))
        return shared[index]

    return Lazy(read)


class TraceEvent(FunctionEvent):
    """A row of a trace with all attributes of a FunctionEvent."""

    __slots__ = ("_position", "_row", "_view")

    def __init__(self, view: TraceView, position: int, row: int) -> None:
        # Deliberately not FunctionEvent's: everything it would store is computed on demand.
        self._view = view
        self._position = position
        self._row = row

    # The same for every recorded event.
    node_id = -1
    count = 1
    is_async = False
    is_remote = False
    is_legacy = False
    self_cpu_percent = -1
    total_cpu_percent = -1
    total_device_percent = -1
    event_metadata = None

    # Besides the attributes, a file has the event's number there.
    _metadata_json = Lazy(lambda event: f'"Ev Idx": {event._row}' if event._view.with_metadata else "")
    id = _from_view("id")
    name = Lazy(lambda event: event._view.names[event._view.name.item(event._position)])
    trace_name = Lazy(lambda event: event._view.trace.names[event._view.trace.events["name"].item(event._row)])
    overload_name = Lazy(lambda event: event._view.trace.names[event._view.trace.events["overload"].item(event._row)])
    time_range = Lazy(lambda event: event._make_interval())
    thread = Lazy(lambda event: event._view.trace.events["thread"].item(event._row) + 1)
    pid = Lazy(lambda event: event._thread_info().pid)
    process_name = Lazy(lambda event: event._thread_info().process_name)
    fwd_thread = Lazy(lambda event: event._find_forward_thread())
    kernels = Lazy(lambda event: event._find_kernels())
    cpu_children = Lazy(lambda event: [event_at(event._view, child) for child in event._child_positions()])
    cpu_parent = Lazy(lambda event: event._find_parent())
    input_shapes = _from_arguments(arguments.shapes)
    concrete_inputs = _from_arguments(arguments.concrete)
    structured_input_shapes = _from_arguments(arguments.structured_shapes)
    structured_input_strides = _from_arguments(arguments.structured_strides)
    input_dtypes = _from_arguments(arguments.dtypes)
    kwinputs = Lazy(lambda event: arguments.named(event._view.arguments(event._arguments_number())))
    stack = Lazy(lambda event: event._view.stack_entries(event._view.stack.item(event._position)))
    line = Lazy(lambda event: event._view.line.item(event._position))
    scope = Lazy(lambda event: KINDS[event._recorded_kind()].scope)
    use_device = Lazy(lambda event: event._view.use_device)
    cpu_memory_usage = _from_view("cpu_bytes")
    device_memory_usage = _from_view("device_bytes")
    sequence_nr = _from_column("sequence")
    device_type = Lazy(lambda event: _DEVICE_TYPES[event._view.trace.events["device"].item(event._row)])
    device_index = Lazy(lambda event: event._find_device_index())
    device_resource_id = Lazy(lambda event: event._thread_info().tid)
    flops = Lazy(lambda event: max(0, event._view.trace.events["flops"].item(event._row)))
    is_user_annotation = _from_view("is_annotation")
    is_python_function = Lazy(lambda event: event._recorded_kind() in (Kind.PYTHON, Kind.MODULE))
    activity_type = Lazy(lambda event: KINDS[event._recorded_kind()].category)
    flow_id = _from_view("flow")
    flow_type = Lazy(lambda event: int(event.flow_id > 0))
    flow_start = Lazy(lambda event: event.flow_id > 0 and event._recorded_kind() != Kind.BACKWARD_FUNCTION)
    linked_correlation_id = Lazy(lambda event: event._find_linked_id())
    external_id = Lazy(lambda event: event.linked_correlation_id or (event.id if event._is_host() else 0))
    python_id = Lazy(lambda event: event._row if event.is_python_function else -1)
    python_parent_id = Lazy(lambda event: event._find_python_parent())
    python_module_id = Lazy(lambda event: event._find_module_number())

    # Values that follow from other attributes are read from columns until somebody has read, and so perhaps changed,
    # those attributes. Times are rounded to nanoseconds, the unit of the measurement.

    def _counted_children(self) -> list[FunctionEvent]:
        """All children except calls inside a scope that is also a child."""
        view = self._view
        return [child for child in self.cpu_children if not (
            isinstance(child, TraceEvent) and child._view is view and view.in_a_scope(child._position))]

    @property
    def cpu_time_total(self) -> float:
        """CPU time with children, microseconds."""
        if not _TIMING.isdisjoint(self.__dict__):
            return super().cpu_time_total
        return self._view.cpu_ns.item(self._position) / 1000

    @property
    def self_cpu_time_total(self) -> float:
        """CPU time without children, microseconds."""
        if not _SELF_TIMING.isdisjoint(self.__dict__):
            return round(super().self_cpu_time_total, 3)
        return self._view.self_cpu_ns.item(self._position) / 1000

    @property
    def device_time_total(self) -> float:
        """Device time with children, microseconds."""
        if not _DEVICE_TIMING.isdisjoint(self.__dict__):
            return round(super().device_time_total, 3)
        return self._view.device_ns.item(self._position) / 1000

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes of CPU memory allocated minus released, without children."""
        if not _CPU_MEMORY.isdisjoint(self.__dict__):
            return super().self_cpu_memory_usage
        return self._view.self_cpu_bytes.item(self._position)

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes of device memory allocated minus released, without children."""
        if not _DEVICE_MEMORY.isdisjoint(self.__dict__):
            return super().self_device_memory_usage
        return self._view.self_device_bytes.item(self._position)

    def _make_interval(self) -> TraceInterval:
        view, origin = self._view, self._view.trace.start_ns
        return TraceInterval(view.start_ns.item(self._position) - origin, view.end_ns.item(self._position) - origin)

    def _arguments_number(self) -> int:
        return self._view.trace.events["inputs"].item(self._row)

    def _recorded_kind(self) -> Kind:
        return Kind(self._view.trace.events["kind"].item(self._row))

    def _thread_info(self) -> Any:
        trace = self._view.trace
        return trace.threads[trace.events["thread"].item(self._row)]

    def _is_host(self) -> bool:
        return self.device_type == DeviceType.CPU

    def _find_device_index(self) -> int:
        # PyTorch has the process id here for events on the CPU.
        return self._thread_info().pid if self._is_host() else self._view.trace.events["device_index"].item(self._row)

    def _find_forward_thread(self) -> int:
        forward = self._view.forward.item(self._position)
        return 0 if forward < 0 else self._view.trace.events["thread"].item(forward) + 1

    def _find_linked_id(self) -> int:
        launcher = self._view.position.item(self._view.launcher.item(self._row))
        return 0 if launcher < 0 else self._view.id.item(launcher)

    def _find_kernels(self) -> list[Kernel]:
        work, launcher = self._view.launched
        low, high = launcher.searchsorted([self._position, self._position + 1]).tolist()
        launched = [event_at(self._view, position) for position in work[low:high].tolist()]
        return [Kernel(event.name, event.device_index, event.time_range.elapsed_us()) for event in launched]

    def _child_positions(self) -> list[int]:
        return self._view.children_of(self._position)

    def _find_parent(self) -> TraceEvent | None:
        parent = self._view.parent.item(self._position)
        return None if parent < 0 else event_at(self._view, parent)

    def _find_python_parent(self) -> int:
        if not self.is_python_function:
            return -1
        parent = self.cpu_parent
        while parent is not None and not parent.is_python_function:
            parent = parent.cpu_parent
        return -1 if parent is None else parent.python_id

    def _find_module_number(self) -> int:
        """The number in `nn.Module: Linear_0`."""
        number = self.name.rpartition("_")[2]
        return int(number) if self._recorded_kind() == Kind.MODULE and number.isdecimal() else -1

    def _kind(self) -> str:
        return KINDS[self._recorded_kind()].user_kind

    def _step(self) -> int:
        return self._view.step.item(self._position)

    def _module(self) -> str | None:
        module = self._view.trace.events["module"].item(self._row)
        return self._view.trace.names[module] if module >= 0 else None


class TraceMemoryEvent(TraceEvent):
    """Memory that changed outside any event; `_row` is a row of the trace's memory columns."""

    __slots__ = ()

    _metadata_json = None
    overload_name = ""
    trace_name = None
    scope = 0
    sequence_nr = -1
    device_type = DeviceType.CPU
    device_index = 0
    flops = None
    concrete_inputs = kwinputs = structured_input_shapes = structured_input_strides = input_dtypes = None
    is_user_annotation = is_python_function = False
    activity_type = flow_id = flow_type = flow_start = None
    linked_correlation_id = external_id = 0
    python_id = python_parent_id = python_module_id = -1
    thread = Lazy(lambda event: event._view.memory["thread"].item(event._row) + 1)
    fwd_thread = Lazy(lambda event: event.thread)
    device_resource_id = Lazy(lambda event: event.thread)
    input_shapes = Lazy(lambda event: [])
    stack = Lazy(lambda event: [])
    kernels = Lazy(lambda event: [])

    def _thread_info(self) -> Any:
        return self._view.trace.threads[self.thread - 1]

    def _kind(self) -> str:
        return "memory"

    def _module(self) -> str | None:
        return None


def _make(view: TraceView, position: int) -> TraceEvent:
    row = view.row.item(position)
    if row >= 0:
        return TraceEvent(view, position, row)
    return TraceMemoryEvent(view, position, view.change.item(position))


def event_at(view: TraceView, position: int) -> TraceEvent:
    """The one object for a position."""
    if view.objects is None:
        view.objects = [None] * len(view)
    found = view.objects[position]
    if found is None:
        found = view.objects[position] = _make(view, position)
    return found


def events_of(trace: Trace, *, use_device: str | None = None, profile_memory: bool = False,
              with_flops: bool = False, with_metadata: bool = False) -> EventList:
    """All events of a trace by start time, linked to parents and children.

    With `profile_memory`, events have their memory, and changes outside any event are events named "[memory]". With
    `with_metadata`, events know their number in a file.
    """
    view = TraceView(trace, use_device=use_device, profile_memory=profile_memory)
    view.with_metadata = with_metadata
    if view.row_count == len(view):
        view.objects = [TraceEvent(view, position, row) for position, row in enumerate(view.row.tolist())]
    else:
        view.objects = [_make(view, position) for position in range(len(view))]
    events = EventList(view.objects, use_device=use_device, profile_memory=profile_memory, with_flops=with_flops)
    events._tree_built = True
    events._dropped, events._notes = trace.dropped, device_notes(trace)
    return events
