"""Collects what threads append. Nothing is computed here; see `assemble` for what becomes of it.

All recorders that are active at the same time share one session, that is, one list per thread; each remembers where
in those lists it began and ended. So a profiler inside a profiler sees its part, and the outer one sees everything.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._dispatch.describe import INPUTS, forget_all
from ..._dispatch.observer import HOOK, MEMORY_LOGS, observe, unobserve, watch
from ..._dispatch.state import NOWHERE, STATES, ThreadState
from ..trace import ThreadInfo, Trace
from . import open_scopes, processes
from .buffers import Buffers, Events, since
from .call_limit import CallBudget
from .gc_pauses import PauseLog
from .held import HeldLog
from .memory import new_log
from .module_calls import ModuleLabels, ModuleLog, ModuleName, names_of
from .python_calls import CallLog, CallPiece, Mark
from .tensor_uses import MoveLog, Owners, new_use_log

clock = HOOK["clock"]
MEMORY = new_log()
MEMORY.rest()


@dataclass(frozen=True)
class RecorderOptions:
    """What to record besides names and times."""

    shapes: bool = False
    memory: bool = False
    stacks: bool = False  # Python calls, and from them the stack of each event
    modules: bool = False  # the module that each event ran in
    max_events: int | None = None
    collections: bool = False  # pauses of Python's garbage collector

    @property
    def tensors(self) -> bool:
        """Whether to note which memory ops use."""
        return self.shapes and self.memory

    @property
    def timeline(self) -> bool:
        """Whether to note whose memory it is, too: where a memory timeline can be asked for."""
        return self.tensors and self.stacks


@dataclass
class Lane:
    """The events of one thread during a session."""

    events: Events
    info: ThreadInfo
    ident: int


@dataclass(frozen=True)
class Piece:
    """The part of a lane that belongs to one recorder."""

    events: Events
    info: ThreadInfo
    ident: int
    modules: dict[int, ModuleName] = field(default_factory=dict)  # by the identity that module events carry
    record_ids: dict[int, int] = field(default_factory=dict)  # see `Session`
    begin: int = 0  # where in the lane this part began


class Session:
    """One list per thread, shared by all active recorders."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.users: list[Recorder] = []
        self.buffers = Buffers()
        self.memory: Any = None  # the process's log while somebody wants it
        self.calls: CallLog | None = None
        self.call_budget = CallBudget()
        self.modules: ModuleLog | None = None
        self.uses: Any = None  # what `new_use_log` makes
        # Numbers that an execution trace gave to events, by the identity of the buffer and its length after the event.
        self.record_ids: dict[int, dict[int, int]] = {}
        self.moves: MoveLog | None = None
        self.owners: Owners | None = None
        self.held: HeldLog | None = None
        self.pauses: PauseLog | None = None
        self.failures: list[tuple[int, int, int]] = []  # allocations: time, thread, bytes

    def limit(self) -> int | None:
        """How many events, and how many Python calls, to keep at most."""
        return min((u.options.max_events for u in self.users if u.options.max_events is not None), default=None)

    def dropped(self) -> int:
        """How many found no room."""
        return self.buffers.dropped + self.call_budget.dropped

    def failed(self, size_bytes: int) -> None:
        """Note that there was no memory for this."""
        self.failures.append((clock(), threading.get_ident(), size_bytes))

    def new_thread(self, state: ThreadState) -> None:
        """Give a thread a list to write to."""
        thread = state.thread()
        name = thread.name if thread is not None else ""
        events = self.buffers.give(state, self.limit())
        self.lanes.append(Lane(events, ThreadInfo(os.getpid(), state.native_id, name), state.ident))
        if self.calls is not None:
            self.calls.joined()

    def first_call(self, module: Any) -> None:
        """Note what a module holds."""
        for log in (self.held, self.owners):
            if log is not None:
                log.module(module)

    def stepped(self, optimizer: Any) -> None:
        """Note what an optimizer works on."""
        for log in (self.held, self.owners):
            if log is not None:
                log.stepped(optimizer)

    def adapt(self) -> None:
        """Record what the active recorders together ask for."""
        if any(u.options.memory for u in self.users):
            self.memory = MEMORY
            MEMORY.wake()
            MEMORY_LOGS[:] = [MEMORY]
            HOOK["ALLOCATED"], HOOK["FAILED"] = MEMORY.allocated, self.failed
        elif self.memory is not None:
            HOOK["ALLOCATED"] = HOOK["FAILED"] = self.memory = None
            MEMORY.rest()
        if any(u.options.stacks or u.options.modules for u in self.users):
            if self.modules is None:
                self.modules = ModuleLog()
                self.modules.start()
        elif self.modules is not None:
            self.modules.stop()
            self.modules = None
        if any(u.options.tensors for u in self.users):
            if self.uses is None or self.moves is None:
                self.uses, self.moves = new_use_log(), MoveLog()
            HOOK["MOVED"] = self.moves.moved
        elif self.uses is not None:
            HOOK["MOVED"] = self.uses = self.moves = None
        if any(u.options.timeline for u in self.users):
            self.owners = self.owners or Owners()
        else:
            self.owners = None
        watch(any(u.options.shapes for u in self.users), self.uses)
        if self.modules is not None and any(u.options.stacks for u in self.users):
            self.held = self.held or HeldLog()
            self.modules.first_call, HOOK["STEPPED"] = self.first_call, self.stepped
        elif self.held is not None:
            HOOK["STEPPED"] = self.held = None
        if any(u.options.stacks for u in self.users):
            if self.calls is None:
                self.call_budget.limit = self.limit()
                self.calls = CallLog(self.call_budget)
                self.calls.start()
        elif self.calls is not None:
            self.calls.stop()
            self.calls = None
        if self.modules is not None:
            self.modules.hushes = self.calls is not None
        HOOK["CALLS"] = self.calls is not None
        if any(u.options.collections for u in self.users):
            if self.pauses is None:
                self.pauses = PauseLog()
                self.pauses.start()
        elif self.pauses is not None:
            self.pauses.stop()
            self.pauses = None


class Recorder:
    """Records from `start` to `stop`, with pauses in between if asked."""

    session: Session | None = None
    lock = threading.RLock()
    with_children = True  # whether other processes are asked to take part

    def __init__(self, options: RecorderOptions) -> None:
        self.options = options
        self.pieces: list[Piece] = []
        self.begins: dict[int, int] = {}
        self.memory: list[tuple[np.ndarray, ...]] = []  # time, thread, bytes, address; an item per stretch
        self.memory_bases: list[int] = []  # what was allocated before each stretch, as far as known
        self.memory_begin = 0
        self.uses: list[tuple[np.ndarray, ...]] = []  # time, thread, position, address, bytes, tensor
        self.moves: list[tuple[int, int, int, int]] = []  # time, tensor, address, new address
        self.owners: list[tuple[np.ndarray, ...]] = []  # time, address, bytes, role
        self._tensors_begin = (0, 0, 0)
        self.pauses: list[np.ndarray] = []
        self._pauses_begin = 0
        self.failures: list[tuple[int, int, int]] = []
        self._failures_begin = 0
        self.open_scopes: list[open_scopes.OpenScope] = []
        self.calls: list[CallPiece] = []
        self.module_labels = ModuleLabels()
        self.held: Any = None  # `Holdings`
        self._calls_mark: Mark | None = None
        self.active = False
        self.steps_ns: list[int] = []
        self.start_ns = self.end_ns = 0
        self.epoch_ns = 0
        self.dropped = 0
        self._dropped_before = 0
        self.children: list[Trace] = []  # of processes that took part
        self.lost_children: list[str] = []
        self._children_key = self._children_begin_ns = 0

    def start(self) -> None:
        """Begin, or begin again after a pause."""
        if self.active:
            return
        # First: waiting for other processes must not be part of the recording.
        self._children_key = processes.begin(self.options) if self.with_children else 0
        with Recorder.lock:
            if Recorder.session is None:
                if len(INPUTS) > MANY_DESCRIPTIONS and not HOLDING:
                    forget_all()
                Recorder.session = Session()
            session = Recorder.session
            session.users.append(self)
            if len(session.users) == 1:
                observe(session.new_thread, self.options.shapes)
            session.adapt()
            self.begins = {id(lane): len(lane.events) for lane in session.lanes}
            if session.memory is not None and self.options.memory:
                self.memory_begin = len(session.memory)
                self.memory_bases.append(session.memory.live_bytes)
            if session.uses is not None and session.moves is not None:
                self._tensors_begin = (len(session.uses), len(session.moves.moves),
                                       0 if session.owners is None else len(session.owners))
            self._failures_begin = len(session.failures)
            self._pauses_begin = 0 if session.pauses is None else len(session.pauses)
            self._dropped_before = session.dropped()
            self.open_scopes = []  # those of a stretch before this one may end now
            self.active = True
            ACTIVE.add(self)
        if not self.start_ns:
            self.epoch_ns = time.time_ns() - clock()
            self.start_ns = clock()
        self._children_begin_ns = clock()
        if self.options.stacks and session.calls is not None:
            # Last, so that what starting calls is not part of the recording.
            self._calls_mark = session.calls.mark()

    def stop(self) -> None:
        """End, keeping what was recorded; may be called when not active."""
        with Recorder.lock:
            if not self.active:
                return
            self.end_ns = clock()
            self.active = False
            ACTIVE.discard(self)
            session = Recorder.session
            if session is None:
                return
            if session.users == [self]:
                # First of all, so that nothing begins on other threads while this one takes what there is.
                unobserve()
                self.end_ns = clock()
            if self._calls_mark is not None and session.calls is not None:
                self.calls.extend(session.calls.since(self._calls_mark, self.end_ns))
                self._calls_mark = None
            if session.memory is not None and self.options.memory:
                self.memory.append(session.memory.since(self.memory_begin))
                self.failures += session.failures[self._failures_begin:]
            if session.uses is not None and session.moves is not None and self.options.tensors:
                self.uses.append(session.uses.since(self._tensors_begin[0]))
                self.moves += session.moves.moves[self._tensors_begin[1]:]
                if session.owners is not None and self.options.timeline:
                    self.owners.append(session.owners.since(self._tensors_begin[2]))
            if session.pauses is not None and self.options.collections:
                self.pauses.append(session.pauses.since(self._pauses_begin))
            modules: dict[int, ModuleName] = {}
            if session.modules is not None and (self.options.stacks or self.options.modules):
                modules = names_of(list(session.modules.called.values()), self.module_labels)
                if session.held is not None:
                    self.held = session.held.holdings(modules)
            session.users.remove(self)
            last = not session.users
            if last:
                Recorder.session = None
            session.adapt()
            for lane in session.lanes:
                begin = self.begins.get(id(lane), 0)
                if len(lane.events) > begin:
                    # A lane nobody else reads is handed over as it is; it can be gigabytes.
                    events = lane.events if last and begin == 0 else since(lane.events, begin)
                    self.pieces.append(Piece(events, lane.info, lane.ident, modules,
                                             session.record_ids.get(id(lane.events), {}), begin))
            HOLDING.add(self)
            self.dropped += session.dropped() - self._dropped_before
            threads = {lane.ident: lane.info for lane in session.lanes}
            self.open_scopes = open_scopes.open_since(self.start_ns, threads)
            if last:
                open_scopes.OPEN.clear()
                # Let go of the lanes, so that a finished recording is freed with the profiler that has it.
                for state in list(STATES):
                    state.record_into(NOWHERE)
        # After all else: waiting for other processes must not keep this one's threads recording.
        arrived = processes.end(self._children_key, self._children_begin_ns, self.end_ns)
        self.children += arrived.traces
        self.lost_children += arrived.lost

    def step(self) -> None:
        """Mark the start of the next step."""
        self.steps_ns.append(clock())


ACTIVE: weakref.WeakSet[Recorder] = weakref.WeakSet()
# Recorders that have events, whose inputs are numbers of descriptions. While there is none, descriptions may go.
HOLDING: weakref.WeakSet[Recorder] = weakref.WeakSet()
MANY_DESCRIPTIONS = 4096


def _forget_in_child() -> None:
    """A forked child neither records into nor disturbs its parent's recording."""
    Recorder.lock = threading.RLock()
    processes.forget()
    if Recorder.session is not None:
        unobserve()
        HOOK["ALLOCATED"] = HOOK["STEPPED"] = HOOK["FAILED"] = HOOK["MOVED"] = None
        MEMORY.rest()
        HOOK["CALLS"] = False
        if Recorder.session.calls is not None:
            Recorder.session.calls.stop()
        if Recorder.session.modules is not None:
            Recorder.session.modules.stop()
        if Recorder.session.pauses is not None:
            Recorder.session.pauses.stop()
        Recorder.session = None
    for recorder in list(ACTIVE):
        recorder.active = False
    ACTIVE.clear()
    for state in list(STATES):
        state.record_into(NOWHERE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
