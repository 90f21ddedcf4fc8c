"""The events of a trace as trees, in the form of PyTorch's `kineto_results.experimental_event_tree()`.

Unlike the list of events, a tree has everything that happened on a thread: ops and scopes, Python calls around them,
and memory changes inside them.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..devices import device_name
from ..schema import DEVICE_KINDS, KINDS, Kind
from ..tables.derived import callers
from ..tables.nesting import enclosing_rows, rows_around
from ..tables.select import select
from ..trace import TensorInput, Trace
from .event_fields import (
    AllocationFields,
    EventType,
    Identity,
    KinetoFields,
    NNModuleInfo,
    OptimizerInfo,
    OutOfMemoryFields,
    PyCallFields,
    PyCCallFields,
    RecordScope,
    TensorMetadata,
    TorchOpFields,
    Values,
    frame_state,
    module_label,
    op_inputs,
)
from .formatting import MEMORY_EVENT_NAME, OUT_OF_MEMORY_EVENT_NAME
from .holdings import Holdings
from .memory_blocks import Blocks, blocks_of
from .tensor_ids import TensorIds, tensor_ids

_SCOPES = {scope.value: scope for scope in RecordScope}
_PYTHON = (Kind.PYTHON, Kind.MODULE)
_BUILT_IN = "<built-in "  # the beginning of names of built-in functions
_STEP_CALL = re.compile(r"optim.optimizer\.py\(\d+\): _optimizer_step_code$")  # an optimizer's step calls this
_NUMBERED = (Kind.OP, Kind.BACKWARD, Kind.BACKWARD_FUNCTION, Kind.SCOPE, Kind.STEP, Kind.OTHER)


class ProfilerEvent:
    """A node of the tree; the fields that depend on its `tag` are in `extra_fields`."""

    __slots__ = ("__dict__", "_number", "_tree", "children", "parent")

    def __init__(self, tree: EventTree, number: int) -> None:
        self._tree = tree
        self._number = number
        self.parent: ProfilerEvent | None = None
        self.children: list[ProfilerEvent] = []

    @property
    def id(self) -> int:
        """A number that no other event of the tree has."""
        return self._number

    @property
    def tag(self) -> EventType:
        """The kind of event."""
        return self._tree.tag(self._number)

    @property
    def name(self) -> str:
        """The name of the op, scope or call."""
        return self._tree.name(self._number)

    @property
    def overload_name(self) -> str:
        """The overload of an op; empty if there is none."""
        tree = self._tree
        return tree.trace.names[tree.trace.events["overload"].item(self._number)] if self._number < tree.rows else ""

    @property
    def start_time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return int(self._tree.start_ns[self._number]) + self._tree.trace.epoch_ns

    @property
    def end_time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return int(self._tree.end_ns[self._number]) + self._tree.trace.epoch_ns

    @property
    def duration_time_ns(self) -> int:
        """The length in nanoseconds."""
        return self.end_time_ns - self.start_time_ns

    @property
    def correlation_id(self) -> int:
        """The number of an op or scope in the recording; for device work, the number of its launch; otherwise 0."""
        return int(self._tree.correlation[self._number])

    @property
    def start_tid(self) -> int:
        """The operating system's number of the thread."""
        return self._tree.trace.threads[int(self._tree.thread[self._number])].tid

    @cached_property
    def extra_fields(self) -> Any:
        """The fields of this kind of event."""
        return self._tree.fields(self)

    @property
    def typed(self) -> tuple[EventType, Any]:
        """Kind and fields together."""
        return self.tag, self.extra_fields

    def __repr__(self) -> str:
        return f"<{self.tag} {self.name!r} with {len(self.children)} children>"


class EventTree:
    """All events of a trace, numbered: its rows, then its memory changes, then its failed allocations."""

    def __init__(self, trace: Trace, values: Values | None = None) -> None:
        self.trace = trace
        self.values = values or Values()
        self._numbers: dict[Hashable, int] = {}
        events, memory, failures = trace.events, trace.optional("memory"), trace.optional("failures")
        self.rows, self.changes = len(trace), len(memory["time_ns"])
        instants = np.concatenate((memory["time_ns"], failures["time_ns"]))
        self.start_ns = np.concatenate((events["start_ns"], instants))
        self.end_ns = np.concatenate((events["end_ns"], instants))
        self.thread = np.concatenate((events["thread"], memory["thread"], failures["thread"]))

    @cached_property
    def correlation(self) -> np.ndarray:
        """Numbers of ops and scopes in the order in which they started; numbers of launches for device work."""
        events = self.trace.events
        order = np.argsort(events["start_ns"], kind="stable")
        numbered = np.isin(events["kind"][order], _NUMBERED) & (events["device"][order] == 0)
        result = np.zeros(len(self.start_ns), np.int64)
        own = np.cumsum(numbered) + (self.trace.first_id - 1)
        result[order] = np.where(numbered, own, events["correlation"][order])
        return result

    @cached_property
    def blocks(self) -> Blocks:
        """The memory blocks in the trace."""
        return blocks_of(self.trace)

    @cached_property
    def ids(self) -> TensorIds | None:
        """The numbers of tensors and their memory; None unless shapes and memory were recorded together."""
        known = len(self.trace.optional("uses")["row"]) or (self.changes and (self.trace.events["inputs"] >= 0).any())
        return tensor_ids(self.trace, self.blocks) if known else None

    @cached_property
    def uses(self) -> dict[int, dict[int, list[tuple[int, int, int]]]]:
        """By row and argument, the tensors that an op was given: block, address and identity."""
        result: dict[int, dict[int, list[tuple[int, int, int]]]] = {}
        table = self.trace.optional("uses")
        for row, argument, *found in zip(table["row"].tolist(), table["argument"].tolist(),
                                         self.blocks.of_use.tolist(), table["address"].tolist(),
                                         table["tensor"].tolist(), strict=True):
            result.setdefault(row, {}).setdefault(argument, []).append(tuple(found))
        return result

    def parents(self) -> np.ndarray:
        """The number of each event's parent, or -1.

        Ops are in ops, and Python calls in Python calls. A call's outermost op is in that call. A call that an op
        caused, such as a hook, is in that op.
        """
        events = self.trace.events
        own = events["parent"].astype(np.int64)
        result = own.copy()
        if np.isin(events["kind"], _PYTHON).any():
            caller = callers(events)
            result = np.where(caller >= 0, caller, result)
            result = self._calls_inside_ops(result)
        memory, failures = self.trace.optional("memory"), self.trace.optional("failures")
        inside = np.concatenate((memory["row"], rows_around(events, failures["thread"], failures["time_ns"]))).astype(
            np.int64)
        if len(result):
            inside = self._innermost(inside, self.thread[self.rows:], self.start_ns[self.rows:])
        return np.concatenate((result, inside))

    def _calls_inside_ops(self, parent: np.ndarray) -> np.ndarray:
        """The calls that belong to an op: they started inside an op which is itself inside their caller."""
        events = self.trace.events
        calls = np.flatnonzero(np.isin(events["kind"], _PYTHON))
        others = np.flatnonzero(~np.isin(events["kind"], _PYTHON))
        if not len(others):
            return parent
        found = self._enclosing(others, events["thread"][calls], events["start_ns"][calls])
        above = parent[calls]
        start = events["start_ns"]
        closer = (found >= 0) & (events["end_ns"][found] >= events["end_ns"][calls])
        closer &= (above < 0) | (start[found] >= start[above])
        result = parent.copy()
        result[calls[closer]] = found[closer]
        return result

    def _innermost(self, row: np.ndarray, thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
        """Of the op and the Python call around an instant, the one that started later."""
        events = self.trace.events
        calls = np.flatnonzero(np.isin(events["kind"], _PYTHON))
        if not len(calls):
            return row
        call = self._enclosing(calls, thread, time_ns)
        later = (call >= 0) & ((row < 0) | (events["start_ns"][call] > events["start_ns"][row]))
        return np.where(later, call, row)

    def _enclosing(self, among: np.ndarray, thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
        events = self.trace.events
        part = {key: events[key][among] for key in ("thread", "start_ns", "end_ns")}
        above = events["parent"][among]
        place = np.searchsorted(among, np.maximum(above, 0))
        # Ops have parents among ops and calls among calls, so these are all there.
        part["parent"] = np.where(above >= 0, place, -1)
        return np.append(among, -1)[enclosing_rows(part, thread, time_ns)]

    def roots(self) -> list[ProfilerEvent]:
        """The trees, by thread and then by time."""
        events = [ProfilerEvent(self, number) for number in range(len(self.start_ns))]
        parent = self.parents().tolist()
        found = []
        # Earlier starts come first; at the same instant, a longer event before what it contains.
        for number in np.lexsort((-self.end_ns, self.start_ns)).tolist():
            event = events[number]
            if parent[number] >= 0:
                event.parent = events[parent[number]]
                event.parent.children.append(event)
            else:
                found.append(event)
        return found

    def tag(self, number: int) -> EventType:
        """The kind of an event."""
        if number >= self.rows:
            return EventType.Allocation if number < self.rows + self.changes else EventType.OutOfMemory
        kind = Kind(self.trace.events["kind"].item(number))
        if kind in _PYTHON:
            return EventType.PyCCall if self.name(number).startswith(_BUILT_IN) else EventType.PyCall
        if kind in (*DEVICE_KINDS, Kind.LAUNCH, Kind.GC, Kind.OVERHEAD):
            return EventType.Kineto
        return EventType.TorchOp

    def name(self, number: int) -> str:
        """The name of an event."""
        if number >= self.rows:
            return MEMORY_EVENT_NAME if number < self.rows + self.changes else OUT_OF_MEMORY_EVENT_NAME
        return self.trace.names[self.trace.events["name"].item(number)]

    def fields(self, event: ProfilerEvent) -> Any:
        """The fields of an event that depend on its kind."""
        number, tag = event._number, event.tag
        if tag is EventType.Allocation:
            return self._allocation(number - self.rows)
        if tag is EventType.OutOfMemory:
            return OutOfMemoryFields()
        if tag is EventType.Kineto:
            return KinetoFields()
        if tag in (EventType.PyCall, EventType.PyCCall):
            above = event.parent
            while above is not None and above.tag is not EventType.PyCall:
                above = above.parent
            own = frame_state(event.name)
            caller = own if above is None else frame_state(above.name)
            if tag is EventType.PyCCall:
                return PyCCallFields(caller)
            return PyCallFields(own, caller, self._module(event.name), self._optimizer(number))
        columns = self.trace.events
        arguments = columns["inputs"].item(number)
        kind = Kind(columns["kind"].item(number))
        return TorchOpFields(
            event.name,
            op_inputs(self.trace.inputs[arguments] if arguments >= 0 else (), self._metadata(number),
                      self.values.operands(event.name, event.overload_name) if kind is Kind.OP else frozenset()),
            _SCOPES[KINDS[kind].scope], columns["sequence"].item(number))

    def _allocation(self, change: int) -> AllocationFields:
        memory = self.trace.optional("memory")
        block = int(self.blocks.of_change[change])
        where = self.values.device(device_name(memory["device"].item(change), memory["device_index"].item(change)))
        ids = self.ids
        return AllocationFields(
            id=None if ids is None else ids.tensor[block],
            allocation_id=None if ids is None else ids.allocation[block], ptr=memory["address"].item(change),
            alloc_size=memory["size_bytes"].item(change), total_allocated=memory["total_bytes"].item(change),
            total_reserved=memory["reserved_bytes"].item(change), device=where)

    def _module(self, name: str) -> NNModuleInfo | None:
        label = module_label(name)
        if label is None:
            return None
        kind = label.rpartition("_")[0]
        numbers = self.number(("module", label)), self.number(("class", kind))
        if not self.trace.has("holders"):
            return NNModuleInfo(kind, label, *numbers)
        found = self.holdings.modules.get(label)
        return NNModuleInfo(kind, label, *numbers, [] if found is None else [
            (parameter.name, self._held(parameter.tensor, found.time_ns), self._held(parameter.gradient, found.time_ns))
            for parameter in found.parameters.values()])

    @cached_property
    def holdings(self) -> Holdings:
        """What modules and optimizers held."""
        return Holdings(self.trace)

    @cached_property
    def _steps(self) -> dict[int, int]:
        """By row, the optimizers whose step a Python call is."""
        if not self.holdings.steps:
            return {}
        events = self.trace.events
        is_step = np.array([_STEP_CALL.search(name) is not None for name in self.trace.names], bool)
        calls = np.flatnonzero((events["kind"] == Kind.PYTHON) & is_step[events["name"]])
        result = {}
        for time, holder in self.holdings.steps:
            around = calls[(events["start_ns"][calls] <= time) & (events["end_ns"][calls] >= time)]
            if len(around):
                result[int(around[np.argmax(events["start_ns"][around])])] = holder
        return result

    def _optimizer(self, row: int) -> OptimizerInfo | None:
        holder = self._steps.get(row)
        if holder is None:
            return None
        found = self.holdings.holders[holder]
        return OptimizerInfo(found.optimizer, [
            (self._held(parameter.tensor, found.time_ns), self._held(parameter.gradient, found.time_ns),
             [(name, self._held(value, found.time_ns)) for name, value in parameter.state])
            for parameter in found.parameters.values()])

    def _held(self, tensor: Any, time_ns: int) -> Any:
        """A tensor that a module held, or None; with its block, if memory was recorded."""
        if tensor is None:
            return None
        blocks = self.blocks
        found = np.flatnonzero((blocks.address == tensor.address) & (blocks.allocated_ns <= time_ns)
                               & (blocks.released_ns > time_ns))
        return self._tensor(tensor.given, int(found[-1]) if len(found) else -1, tensor.address, tensor.tensor)

    def number(self, key: Hashable) -> int:
        """A number that identifies something in this tree; the first one is 1."""
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def _tensor(self, given: TensorInput, block: int, address: int | None, tensor: int) -> TensorMetadata:
        """What is known about a tensor that was seen with these sizes, in a block or -1, at an address or 0."""
        ids, where = self.ids, "cpu"
        number = allocation = None
        if ids is not None:
            if block >= 0:
                number, allocation = ids.tensor[block], ids.allocation[block]
                where = device_name(int(self.blocks.device[block]), int(self.blocks.device_index[block]))
            elif address == 0:
                allocation = ids.nothing
        # The same for all uses of one tensor: its identity, which programs compare with that of their own tensors. If
        # another tensor had the identity before, its number distinguishes the two.
        if address is None:
            same = None
        elif tensor and self._first_with.get(tensor, number) == number:
            same = tensor
        else:
            same = self.number(("tensor", number, tensor) if tensor else ("tensor", number, allocation, address, given))
        known = Identity(number, allocation, address, same)
        return TensorMetadata(given, known, self.values.device(where), self.values)

    @cached_property
    def _first_with(self) -> dict[int, int | None]:
        """By identity, the number of the tensor that had it first."""
        numbers = [] if self.ids is None else self.ids.tensor
        identities, first = np.unique(self.trace.optional("uses")["tensor"], return_index=True)
        blocks = self.blocks.of_use[first].tolist()
        return {identity: numbers[block] if 0 <= block < len(numbers) else None
                for identity, block in zip(identities.tolist(), blocks, strict=True)}

    def _metadata(self, row: int) -> Any:
        known = self.uses.get(row, {}) if len(self.trace.optional("uses")["row"]) else {}

        def tensor(argument: int, place: int, given: Any) -> TensorMetadata:
            found: Sequence[tuple[int, int, int]] = known.get(argument, ())
            block, address, identity = found[place] if place < len(found) else (-1, None, 0)
            return self._tensor(given, block, address, identity)

        return tensor


def event_trees(trace: Trace) -> list[ProfilerEvent]:
    """The outermost events of a trace, with all others below them; without first uses of ops, which PyTorch does not
    have."""
    prepared = trace.events["kind"] == Kind.FIRST_USE
    return EventTree(select(trace, {"events": ~prepared}) if prepared.any() else trace).roots()
