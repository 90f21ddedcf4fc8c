"""Records every op and span with its inputs and outputs, for an execution trace.

A tap runs ops itself: `run` notes the arguments, calls the op's function again, which is then not tapped, and notes the
result. The notes are numbers, shapes and constants; no tensor is kept alive and no text is made. `text.py` turns the
notes into a file.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..._autograd.graph import LAST
from ..._device import CPU, device
from ..._dispatch.observer import HOOK, tap
from ..._dispatch.registry import Op
from ..._dispatch.state import THREAD
from ..._dtype import FROM_NUMPY, INTEGER, dtype
from ..._memory_format import memory_format
from ..._tensor import Tensor
from ..recorder.recorder import Recorder

clock = HOOK["clock"]
ATOMS = frozenset((int, float, bool, complex, str, type(None), dtype, device, memory_format))
# "Record function ids" are unique in a process; a profiler that runs at the same time writes them too.
_RECORD_IDS = itertools.count(1)


class TensorNote(NamedTuple):
    """A tensor at one moment, with numbers for the tensor and its memory. Equal numbers mean the same object."""

    number: int
    storage: int
    offset: int  # in elements, from the start of the memory
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]  # in bytes
    device: device


class OtherNote(NamedTuple):
    """A value of a class of which a trace has only the name."""

    kind: type


class Facts:
    """A fact about each of many objects, without keeping them alive. A new object at an old address counts as new."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref[Any], Any]] = {}
        self.lock = threading.Lock()

    def get(self, thing: Any) -> Any:
        """The fact about an object, or None."""
        found = self.known.get(id(thing))
        return found[1] if found is not None and found[0]() is thing else None

    def first(self, thing: Any, make: Callable[[], Any]) -> Any:
        """The fact about an object; if there is none, `make()` from now on."""
        fact = self.get(thing)
        if fact is None:
            with self.lock:
                fact = self.get(thing)
                if fact is None:
                    fact = make()
                    self.known[id(thing)] = (weakref.ref(thing), fact)
        return fact


class Numbers:
    """Gives numbers to tensors and their memory.

    Kernels work on arrays. An array has the number of the first tensor around it, even before that tensor exists.
    """

    def __init__(self, ids: Iterator[int]) -> None:
        self.next = ids.__next__
        self.tensors, self.arrays, self.wrapped, self.owners = Facts(), Facts(), Facts(), Facts()

    def tensor(self, tensor: Tensor) -> TensorNote:
        """A note of a tensor."""
        number = self.tensors.get(tensor)
        if number is None:
            number = self.tensors.first(tensor, lambda: self._of_new_tensor(tensor))
        return self._note(number, tensor._a)

    def array(self, array: Any) -> TensorNote:
        """A note of an array that a kernel works on, as the tensor that it is or will be."""
        return self._note(self.arrays.first(array, self.next), array)

    def _of_new_tensor(self, tensor: Tensor) -> int:
        array = tensor._a
        if type(array) is not np.ndarray:
            return self.next()
        if self.wrapped.get(array):
            return self.next()  # another tensor around the same array, as `detach` makes
        self.wrapped.first(array, lambda: True)
        return self.arrays.first(array, self.next)

    def _note(self, number: int, array: Any) -> TensorNote:
        where = CPU
        if type(array) is not np.ndarray:
            where = array.device
            array = getattr(array, "phantom", array)  # the meta device's geometry
        owner, offset = array, 0
        while isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray):
            owner = owner.base
        if owner is not array and array.size and where is CPU:
            offset = (array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // array.itemsize
        storage = self.owners.first(owner, self.next)
        return TensorNote(number, storage, offset, array.shape, array.dtype, array.strides, where)


class Noted:
    """An op or a span: what is known at its start, and its outputs at its end."""

    __slots__ = ("event", "failed", "forward", "forward_parent", "id", "inplace", "inputs", "lane", "op", "outputs",
                 "parent", "ranges", "record_id", "seq", "tap")

    tap: ExecutionTraceTap
    lane: Lane
    id: int
    record_id: int
    parent: int
    op: Op | None  # None for a span
    inplace: bool
    event: int  # a span's event id
    seq: int
    inputs: list[Any]
    outputs: Any
    ranges: dict[int, tuple[int, int]] | None
    forward: int  # a backward function's forward thread, 0 for other things
    forward_parent: int  # the innermost node on that thread when this began
    failed: bool

    def leave(self, result: Any = None, failed: bool = False, given: Iterable[Any] | None = None) -> None:
        """Record the end, which may be on another thread than the start, and after the tap was stopped.

        `given` replaces the inputs, if they are known only now.
        """
        if self.tap.pid != os.getpid():
            return  # a forked child leaves a node that its parent entered
        self.failed = failed
        if given is not None:
            self.inputs = [self.tap.note(value) for value in given]
        if result is not None:
            self.outputs = self.tap.note(result)
        open_nodes = self.lane.open
        if open_nodes and open_nodes[-1] is self:
            open_nodes.pop()
        elif self in open_nodes:
            open_nodes.remove(self)
        self.tap.finished.append(self)
        running = Recorder.running
        if running is not None:
            running.ops.note_record_id(THREAD.state.events, self.record_id)


class Lane:
    """A thread in the trace."""

    def __init__(self, number: int, identity: int, place: int) -> None:
        self.number = number  # counted from 1
        self.id = identity  # of the thread's own node
        self.place = place  # number of nodes that were finished before it appeared
        self.open: list[Noted] = []


class _Mine(threading.local):
    """A thread's state of a tap."""

    def __init__(self) -> None:
        self.skip = False  # the next op that asks is the one that `run` calls
        self.lane: Lane | None = None


class ExecutionTraceTap:
    """Collects notes while it is on; `start` and `stop` may be called any number of times."""

    running: ExecutionTraceTap | None = None

    def __init__(self, *, ranges: bool = False, data_of: frozenset[str] = frozenset()) -> None:
        self.ids = itertools.count(1)
        self.root = next(self.ids)
        self.numbers = Numbers(self.ids)
        self.makers = Facts()  # nodes of the autograd graph: the lane that made them
        self.finished: list[Noted] = []
        self.lanes: list[Lane] = []
        self.lock = threading.Lock()
        self.ranges = ranges
        self.data_of = data_of
        self.data: dict[tuple[int, int], bytes] = {}  # of integer tensors, by node and position among its tensors
        self.pid = os.getpid()
        self.mine = _Mine()

    # -- switching -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin or continue."""
        with Recorder.lock:
            ExecutionTraceTap.running = self
            tap(self)

    def stop(self) -> None:
        """Pause. Open nodes keep their place and are recorded when they end."""
        with Recorder.lock:
            if ExecutionTraceTap.running is self:
                ExecutionTraceTap.running = None
                tap(None)

    def open_nodes(self) -> list[Noted]:
        """The nodes that have begun but not ended, innermost first."""
        return [node for lane in self.lanes for node in reversed(lane.open)]

    # -- called by the runtime ---------------------------------------------------------------------------------------

    def takes(self) -> bool:
        """Whether to run the op that asks: not if `run` has just called it."""
        mine = self.mine
        if mine.skip:
            mine.skip = False
            return False
        return True

    def run(self, op: Op, inplace: bool, arguments: dict[str, Any]) -> Any:
        """Run an op, recording its inputs and outputs."""
        state = THREAD.state
        seq = state.seq if state.grad and op.schema.tensors else -1
        node = self._begin(op, inplace, -1, seq, arguments.values())
        mine = self.mine
        mine.skip = True
        result = None
        failed = True
        try:
            result = op.forms[inplace](**arguments)
            failed = False
            if seq >= 0:
                self._note_makers(result, node.lane)
            return result
        finally:
            mine.skip = False
            node.leave(result, failed)

    def enter(self, event: int, seq: int, given: Iterable[Any], graph_node: Any = None) -> Noted:
        """Begin a span, for a node of the autograd graph if one is given; `leave` of the result ends it."""
        node = self._begin(None, False, event, seq, given)
        if graph_node is not None:
            lane = self.makers.get(graph_node) or node.lane
            node.forward = lane.number
            above = [other for other in lane.open if other is not node]
            node.forward_parent = above[-1].id if above else lane.id
        return node

    # -- notes -------------------------------------------------------------------------------------------------------

    def _begin(self, op: Op | None, inplace: bool, event: int, seq: int, given: Iterable[Any]) -> Noted:
        lane = self.mine.lane or self._new_lane()
        node = Noted()
        node.tap, node.lane, node.op, node.inplace, node.event, node.seq = self, lane, op, inplace, event, seq
        node.id = next(self.ids)
        node.record_id = next(_RECORD_IDS)
        node.parent = lane.open[-1].id if lane.open else lane.id
        node.inputs = [self.note(value) for value in given]
        node.outputs = node.ranges = None
        node.forward = node.forward_parent = 0
        node.failed = False
        if self.ranges or self.data_of:
            self._note_integers(node, given)
        lane.open.append(node)
        return node

    def _new_lane(self) -> Lane:
        with self.lock:
            lane = Lane(len(self.lanes) + 1, next(self.ids), len(self.finished))
            self.lanes.append(lane)
        self.mine.lane = lane
        return lane

    def note(self, value: Any) -> Any:
        """Plain data for a value: a tensor's note, a list or tuple of notes, or a constant."""
        if isinstance(value, Tensor):
            return self.numbers.tensor(value)
        if type(value) in ATOMS:
            return value
        if isinstance(value, list):
            return [self.note(item) for item in value]
        if isinstance(value, tuple):
            return tuple([self.note(item) for item in value])
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return self.numbers.array(value)
        return OtherNote(type(value))

    def _note_makers(self, result: Any, lane: Lane) -> None:
        """Note that the nodes which an op added to the graph were made on its thread."""
        for tensor in result if isinstance(result, tuple) else (result,):
            if isinstance(tensor, Tensor) and tensor._edge is not None:
                made = tensor._edge[0]
                self.makers.first(made, lambda: lane)
                for following in made.edges:
                    if following is not None and following[0].seq == LAST:  # an accumulator, made at first use
                        self.makers.first(following[0], lambda: lane)

    def _note_integers(self, node: Noted, given: Iterable[Any]) -> None:
        """Smallest and largest element and, if requested, the contents of the integer tensors among the inputs."""
        keep = node.op is not None and f"{node.op.namespace}::{node.op.name}{'_' * node.inplace}" in self.data_of
        if node.op is not None and node.op.scalar_overload is None:
            # A number in place of a tensor counts as a tensor.
            arguments = node.op.schema.arguments
            given = [np.array(value) if type(value) is int and place < len(arguments) and arguments[place].is_tensor
                     else value for place, value in enumerate(given)]
        for position, array in enumerate(_arrays(given)):
            if type(array) is not np.ndarray or not array.size or FROM_NUMPY[array.dtype].category != INTEGER:
                continue
            if self.ranges:
                if node.ranges is None:
                    node.ranges = {}
                node.ranges[position] = (int(array.min()), int(array.max()))
            if keep:
                self.data[node.id, position] = array.tobytes()


def _arrays(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, Tensor):
            yield value._a
        elif isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _arrays(value)


def _forget_in_child() -> None:
    """A forked child is not part of its parent's trace."""
    ExecutionTraceTap.running = None
    tap(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
