"""The events of a trace with the accessors of PyTorch's `prof.profiler.kineto_results.events()`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..devices import DeviceType
from ..schema import KINDS, Kind
from ..tables.links import forward_of
from ..trace import Trace
from . import arguments
from .event_fields import Values
from .event_tree import EventTree
from .formatting import HIDDEN_NAMES, _filter_stack_entry
from .trace_view import TraceView

_DEVICE_TYPES = {int(member): member for member in DeviceType}


class KinetoEvent:
    """One event. As in PyTorch, all its facts are functions."""

    __slots__ = ("_facts", "_row")

    def __init__(self, facts: KinetoFacts, row: int) -> None:
        self._facts = facts
        self._row = row

    def _column(self, name: str) -> int:
        return int(self._facts.trace.events[name][self._row])

    def _kind(self) -> Kind:
        return Kind(self._column("kind"))

    def _arguments(self) -> tuple[Any, ...]:
        number = self._column("inputs")
        return self._facts.trace.inputs[number] if number >= 0 else ()

    def name(self) -> str:
        """The recorded name."""
        return self._facts.trace.names[self._column("name")]

    def overload_name(self) -> str:
        """The overload of an op; empty if there is none."""
        return self._facts.trace.names[self._column("overload")]

    def start_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self._column("start_ns") + self._facts.trace.epoch_ns

    def end_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self._column("end_ns") + self._facts.trace.epoch_ns

    def duration_ns(self) -> int:
        """The length in nanoseconds."""
        return self._column("end_ns") - self._column("start_ns")

    def device_type(self) -> DeviceType:
        """The device type."""
        return _DEVICE_TYPES[self._column("device")]

    def device_index(self) -> int:
        """The index of the device; for the CPU the process id, as in PyTorch."""
        thread = self._facts.trace.threads[self._column("thread")]
        return thread.pid if self._column("device") == 0 else self._column("device_index")

    def device_resource_id(self) -> int:
        """The thread or stream."""
        return self._facts.trace.threads[self._column("thread")].tid

    def start_thread_id(self) -> int:
        """The thread, counted from 1."""
        return self._column("thread") + 1

    end_thread_id = start_thread_id

    def fwd_thread_id(self) -> int:
        """The thread of the forward op of a backward event, counted from 1; 0 for other events."""
        forward = int(self._facts.forward[self._row])
        return 0 if forward < 0 else int(self._facts.trace.events["thread"][forward]) + 1

    def sequence_nr(self) -> int:
        """The number that links an op to its backward, or -1."""
        return self._column("sequence")

    def scope(self) -> int:
        """PyTorch's RecordScope as a number."""
        return KINDS[self._kind()].scope

    def correlation_id(self) -> int:
        """The number of an op or scope in the recording."""
        return int(self._facts.tree.correlation[self._row])

    def linked_correlation_id(self) -> int:
        """For device work, the number of the op that launched it; otherwise 0."""
        return int(self._facts.launched_by[self._row])

    def external_id(self) -> int:
        """The launching op's number if there is one, otherwise the event's own."""
        return self.linked_correlation_id() or self.correlation_id()

    def nbytes(self) -> int:
        """Bytes of memory that changed. This list has no events for memory changes, so 0."""
        return 0

    def shapes(self) -> list[list[int]]:
        """Sizes of tensor arguments, an empty list for others."""
        return arguments.shapes(self._arguments())

    def structured_input_shapes(self) -> list[Any]:
        """Like `shapes`, with one list per tensor for lists of tensors."""
        return arguments.structured_shapes(self._arguments())

    def structured_input_strides(self) -> list[Any]:
        """Strides in the form of `structured_input_shapes`."""
        return arguments.structured_strides(self._arguments())

    def dtypes(self) -> list[str]:
        """Element types and kinds of arguments."""
        return arguments.dtypes(self._arguments())

    def concrete_inputs(self) -> list[Any]:
        """Numbers and lists of numbers among the arguments."""
        return arguments.concrete(self._arguments())

    def kwinputs(self) -> dict[str, Any]:
        """The keyword values that `_RecordFunctionFast` was given."""
        return arguments.named(self._arguments())

    def stack(self) -> list[str]:
        """The Python stack, innermost first."""
        number = self._column("stack")
        return [text for text in map(str, self._facts.trace.stack(number)) if _filter_stack_entry(text)]

    def flops(self) -> int:
        """Floating point operations, 0 if unknown."""
        return max(0, self._column("flops"))

    def activity_type(self) -> str:
        """The category in a Chrome trace."""
        return KINDS[self._kind()].category

    def is_async(self) -> bool:
        """Whether it ended on another thread: never recorded as such here."""
        return False

    def is_hidden_event(self) -> bool:
        """Whether lists of events leave it out."""
        return self.name() in HIDDEN_NAMES

    def is_user_annotation(self) -> bool:
        """Whether it is a scope."""
        return self._kind() in (Kind.SCOPE, Kind.STEP)

    def is_python_function(self) -> bool:
        """Whether it is a Python call."""
        return self._kind() in (Kind.PYTHON, Kind.MODULE)

    def cuda_elapsed_us(self) -> int:
        """Device time between two markers, which this profiler does not set: -1."""
        return -1

    privateuse1_elapsed_us = cuda_elapsed_us

    def _shown(self, name: str) -> int:
        """A column of the list of events; 0 for an event that is not in it."""
        place = int(self._facts.view.position[self._row])
        return int(getattr(self._facts.view, name)[place]) if place >= 0 else 0

    def flow_id(self) -> int:
        """The number of the arrow between a forward op and its backward function, or 0."""
        return self._shown("flow")

    def flow_type(self) -> int:
        """1 for an arrow from forward to backward, or 0."""
        return int(self.flow_id() > 0)

    def flow_start(self) -> bool:
        """Whether the arrow starts here."""
        return self.flow_id() > 0 and self._kind() != Kind.BACKWARD_FUNCTION

    def python_id(self) -> int:
        """The number of a Python call, or -1."""
        return self._row if self.is_python_function() else -1

    def python_parent_id(self) -> int:
        """The number of the call around a Python call, or -1."""
        return self._column("parent") if self.is_python_function() else -1

    def python_module_id(self) -> int:
        """The number in a module's label, `nn.Module: Linear_0`, or -1."""
        number = self.name().rpartition("_")[2]
        return int(number) if self._kind() == Kind.MODULE and number.isdecimal() else -1

    def metadata_json(self) -> str:
        """Details from a device's own profiler: none."""
        return ""

    def extra_meta(self) -> dict[str, str]:
        """Details from a device's own profiler: none."""
        return {}

    def __repr__(self) -> str:
        return f"<event {self.name()!r}, {self.duration_ns()} ns>"


class KinetoFacts:
    """Data that the events of a trace share."""

    def __init__(self, trace: Trace, values: Values | None = None) -> None:
        self.trace = trace
        self.values = values

    @cached_property
    def tree(self) -> EventTree:
        """The events as a tree."""
        return EventTree(self.trace, self.values)

    @cached_property
    def view(self) -> TraceView:
        """The list of events as columns."""
        return TraceView(self.trace)

    @cached_property
    def forward(self) -> np.ndarray:
        """For each backward event the row of its forward op, or -1."""
        return forward_of(self.trace)

    @cached_property
    def launched_by(self) -> np.ndarray:
        """For each piece of device work, and each call that queued some, the number of the op that caused it, or 0."""
        launcher = self.view.launcher
        return np.where(launcher >= 0, np.append(self.tree.correlation[:len(launcher)], 0)[launcher], 0)


def kineto_events(facts: KinetoFacts) -> list[KinetoEvent]:
    """All events in order of their start."""
    events = facts.trace.events
    order = np.lexsort((-events["end_ns"], events["start_ns"]))
    return [KinetoEvent(facts, row) for row in order.tolist()]
