"""`FunctionEvent`: one event with PyTorch's attributes, which also reads like a mapping."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..devices import TIMED, DeviceType
from .event_metadata import EventMetadata, _build_metadata
from .formatting import MEMORY_EVENT_NAME, STEP_WILDCARD, _attr_formatter


def deprecated_alias(old: str, new: str, message: str) -> property:
    """A property that warns and then reads another attribute."""

    def read(self: Any) -> Any:
        warnings.warn(message, FutureWarning, stacklevel=2)
        return getattr(self, new)

    read.__doc__ = f"Deprecated name of `{new.lstrip('_')}`."
    read.__name__ = old
    return property(read)


class FormattedTimesMixin:
    """Average and formatted times for classes with `count` and the `*_time_total` attributes."""

    cpu_time_str = _attr_formatter("cpu_time")
    device_time_str = _attr_formatter("device_time")
    cpu_time_total_str = _attr_formatter("cpu_time_total")
    device_time_total_str = _attr_formatter("device_time_total")
    self_cpu_time_total_str = _attr_formatter("self_cpu_time_total")
    self_device_time_total_str = _attr_formatter("self_device_time_total")

    count: int

    @property
    def cpu_time(self) -> float:
        """CPU time per call, microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0  # type: ignore[attr-defined]

    @property
    def device_time(self) -> float:
        """Device time per call, microseconds."""
        return self.device_time_total / self.count if self.count else 0.0  # type: ignore[attr-defined]

    cuda_time = deprecated_alias(
        "cuda_time", "device_time", "`cuda_time` is deprecated, please use `device_time` instead.")


class Interval:
    """From `start` to `end`, microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """The length in microseconds."""
        return self.end - self.start


Kernel = namedtuple("Kernel", ["name", "device", "duration"])


class FunctionEvent(FormattedTimesMixin):
    """One event: an op, a scope, a step, a Python call, or work on a device.

    >>> event = FunctionEvent(id=1, name="aten::add", thread=1, start_us=0, end_us=3)
    >>> event.cpu_time_total, event["duration_ns"], event["kind"]
    (3, 3000, 'op')
    """

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float, overload_name: str | None = None,
        fwd_thread: int | None = None, input_shapes: Any = None, stack: list[str] | None = None, scope: int = 0,
        use_device: str | None = None, cpu_memory_usage: int = 0, device_memory_usage: int = 0, is_async: bool = False,
        is_remote: bool = False, sequence_nr: int = -1, node_id: int = -1, device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0, device_resource_id: int | None = None, is_legacy: bool = False,
        flops: int | None = None, trace_name: str | None = None, concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None, is_user_annotation: bool = False, is_python_function: bool = False,
        activity_type: str | None = None, metadata_json: str | None = None, flow_id: int | None = None,
        flow_type: int | None = None, flow_start: bool | None = None, external_id: int = 0,
        linked_correlation_id: int = 0, extra_meta: Mapping[str, str] | None = None,
        structured_input_shapes: list[Any] | None = None, structured_input_strides: list[Any] | None = None,
        input_dtypes: list[str] | None = None, python_id: int = -1, python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:
        # thread, device and times
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        # the tree, and the device work that it launched
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        # how it was called
        self.input_shapes = input_shapes
        self.concrete_inputs = concrete_inputs
        self.kwinputs = kwinputs
        self.stack = stack
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.device_type = device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy = is_legacy
        self.flops = flops
        self.is_user_annotation = is_user_annotation
        self.is_python_function = is_python_function
        self.activity_type = activity_type
        # filled in when a table is made
        self.self_cpu_percent: Any = -1
        self.total_cpu_percent: Any = -1
        self.total_device_percent: Any = -1
        # links and extras of Kineto
        self._metadata_json = metadata_json
        self.flow_id = flow_id
        self.flow_type = flow_type
        self.flow_start = flow_start
        self.external_id = external_id
        self.linked_correlation_id = linked_correlation_id
        self.event_metadata: EventMetadata | None = _build_metadata(extra_meta) if extra_meta else None
        self.structured_input_shapes = structured_input_shapes
        self.structured_input_strides = structured_input_strides
        self.input_dtypes = input_dtypes
        self.python_id = python_id
        self.python_parent_id = python_parent_id
        self.python_module_id = python_module_id

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add device work that this event launched; `duration` in microseconds."""
        _require_cpu(self, "device_type")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add a direct child. Other descendants would make self times wrong."""
        _require_cpu(self, "device_type")
        if not isinstance(child, FunctionEvent):
            raise AssertionError("Expected child to be a FunctionEvent")
        _require_cpu(child, "child device_type")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the event that directly encloses this one."""
        _require_cpu(self, "device_type")
        if not isinstance(parent, FunctionEvent):
            raise AssertionError("Expected parent to be a FunctionEvent")
        _require_cpu(parent, "parent device_type")
        self.cpu_parent = parent

    def _has_self(self) -> bool:
        """Whether self CPU time and memory have a meaning: not on a device, and not if start and end are on two
        threads."""
        return not self.is_async and self.device_type == DeviceType.CPU

    def _counted_children(self) -> list[FunctionEvent]:
        """The children whose times and memory are part of this event's, each once."""
        return self.cpu_children

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes of CPU memory allocated minus released, without children."""
        if not self._has_self():
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self._counted_children())

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes of device memory allocated minus released, without children."""
        if not self._has_self():
            return 0
        return self.device_memory_usage - sum(child.device_memory_usage for child in self._counted_children())

    @property
    def cpu_time_total(self) -> float:
        """CPU time with children, microseconds."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        """CPU time without children, microseconds; zero if overlapping children leave nothing."""
        if not self._has_self():
            return 0
        return max(0, self.cpu_time_total - sum(child.cpu_time_total for child in self._counted_children()))

    @property
    def device_time_total(self) -> float:
        """Device time of the kernels that this event and its children launched, or of the device event itself."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type == DeviceType.CPU:
            own = sum(kernel.duration for kernel in self.kernels)
            # A legacy event's one pseudo kernel already spans its children.
            return own if self.is_legacy else own + sum(child.device_time_total for child in self._counted_children())
        if self.device_type not in TIMED:
            raise AssertionError(
                f"Expected device_type to be CUDA, PrivateUse1, MTIA, HPU or XPU, but got {self.device_type}")
        return self.time_range.elapsed_us()

    @property
    def self_device_time_total(self) -> float:
        """Device time without children's, microseconds."""
        total = self.device_time_total
        if not total or self.device_type != DeviceType.CPU:
            return total
        return max(0, total - sum(child.device_time_total for child in self._counted_children()))

    metadata_json = deprecated_alias(
        "metadata_json", "_metadata_json", "`metadata_json` is deprecated. Use `event_metadata` instead.")
    self_cuda_memory_usage = deprecated_alias(
        "self_cuda_memory_usage", "self_device_memory_usage",
        "`self_cuda_memory_usage` is deprecated. Use `self_device_memory_usage` instead.")
    cuda_time_total = deprecated_alias(
        "cuda_time_total", "device_time_total", "`cuda_time_total` is deprecated. Use `device_time_total` instead.")
    self_cuda_time_total = deprecated_alias(
        "self_cuda_time_total", "self_device_time_total",
        "`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead.")

    @property
    def key(self) -> str:
        """The key that averages group by."""
        return self.name

    def __repr__(self) -> str:
        facts = {
            "id": self.id, "name": self.name, "overload_name": self.overload_name, "device_type": self.device_type,
            "node_id": self.node_id, "cpu_time": self.cpu_time_str, "start_us": self.time_range.start,
            "end_us": self.time_range.end, "cpu_children": [child.id for child in self.cpu_children],
            f"{self.use_device}_time": self.device_time_str,
        }
        more = {
            "name": self.name, "thread": self.thread, "input_shapes": self.input_shapes,
            "cpu_memory_usage": self.cpu_memory_usage, f"{self.use_device}_memory_usage": self.device_memory_usage,
            "is_async": self.is_async, "is_remote": self.is_remote, "seq_nr": self.sequence_nr,
            "is_legacy": self.is_legacy,
        }
        return f"<FunctionEvent {' '.join(f'{key}={value!s}' for key, value in [*facts.items(), *more.items()])}>"

    # Reading like a mapping.

    def __getitem__(self, key: str) -> Any:
        return _FIELDS[key](self)

    def __contains__(self, key: object) -> bool:
        return key in _FIELDS

    def __iter__(self) -> Iterator[str]:
        return iter(_FIELDS)

    def get(self, key: str, default: Any = None) -> Any:
        """The value under `key`, or `default` if there is no such key."""
        read = _FIELDS.get(key)
        return default if read is None else read(self)

    def keys(self) -> list[str]:
        """The names that can be read with `event[name]`."""
        return list(_FIELDS)

    def values(self) -> list[Any]:
        """The values in the order of `keys()`."""
        return [self[key] for key in _FIELDS]

    def items(self) -> list[tuple[str, Any]]:
        """Pairs of key and value."""
        return [(key, self[key]) for key in _FIELDS]

    def _kind(self) -> str:
        if self.name == MEMORY_EVENT_NAME:
            return "memory"
        if self.is_user_annotation:
            return "step" if self.name == STEP_WILDCARD else "scope"
        if self.is_python_function:
            return "python"
        return "op" if self.device_type == DeviceType.CPU else "kernel"

    def _step(self) -> int:
        return 0  # an event made by hand belongs to no profiler; an event of a trace overrides this

    def _module(self) -> str | None:
        return None

    @property
    def module(self) -> str | None:
        """The path of the module that it ran in, if modules were recorded (an addition to PyTorch's fields)."""
        return self._module()


def _require_cpu(event: FunctionEvent, what: str) -> None:
    if event.device_type != DeviceType.CPU:
        raise AssertionError(f"Expected {what} to be CPU")


_FIELDS: dict[str, Callable[[Any], Any]] = {
    "name": lambda event: event.name,
    "kind": lambda event: event._kind(),
    "step": lambda event: event._step(),
    "start_ns": lambda event: round(event.time_range.start * 1000),
    "end_ns": lambda event: round(event.time_range.end * 1000),
    "duration_ns": lambda event: round(event.time_range.elapsed_us() * 1000),
    "device_type": lambda event: DeviceType(event.device_type).label,
    "device_index": lambda event: event.device_index,
    "thread": lambda event: event.thread,
    "module": lambda event: event._module(),
}
