"""Collects what sources record. Nothing is computed here; `assemble` turns it into a trace.

All recorders that are active at the same time share the sources (`running.Running`). Each remembers where in their logs
it began and ended. So a profiler inside a profiler sees its part, and the outer one sees everything.

If anything fails in `start` or `stop`, Ctrl-C included, the recorder is off afterwards and the next recording is
complete.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..._dispatch.describe import INPUTS, forget_all
from ..._dispatch.observer import HOOK
from ..._dispatch.state import NOWHERE, STATES
from ..locks import is_mine, let_go, new_lock
from ..options import Options
from ..sources import processes
from ..sources.base import Source, Stretch
from ..sources.buffers import drained
from ..sources.memory import MEMORY, MemoryPart
from ..sources.modules import ModuleLabels, ModuleName, Modules
from ..sources.ops import Piece
from ..sources.python_calls import CallLane, CallPiece, mark_after
from .running import Failures, Running

clock = HOOK["clock"]


class Recorder:
    """Records from `start` to `stop`, with pauses in between if requested."""

    running: Running | None = None  # while any recorder is active
    lock = new_lock()

    def __init__(self, options: Options, own: Sequence[Source] | None = None) -> None:
        self.options = options
        # Sources that belong to this recorder only.
        self.own = (processes.Processes(),) if own is None else own
        self.parts: dict[str, list[Any]] = {}  # by source: its results, one item per stretch
        self.labels = ModuleLabels()
        self.active = False
        self.steps_ns: list[int] = []
        self.start_ns = self.end_ns = 0
        self.epoch_ns = 0
        self.dropped = 0
        self.notes_taken = 0  # serial number of the last collective in an earlier part
        self.waits_taken = 0  # and of the last wait
        self.calls_taken: dict[CallLane, CallPiece] = {}  # from what was taken out of another recorder
        self._marks: dict[str, Any] = {}
        self._dropped_before = 0
        self._own_marks: dict[str, Any] = {}

    def taken(self, source: str) -> list[Any]:
        """The results of a source, one item per stretch."""
        return self.parts.get(source, [])

    def start(self) -> None:
        """Begin, or begin again after a pause."""
        if self.active:
            return
        try:
            for source in self.own:
                if source.wanted(self.options):
                    # First: waiting must not be part of the recording.
                    source.on = True
                    source.start()
                    source.adapt([self.options])
            with Recorder.lock:
                self._begin()
        except BaseException:
            self.abandon()
            raise
        _let_go()

    def _begin(self) -> None:
        running = Recorder.running
        if running is not None and not running.users:
            running.settle()  # an earlier call was interrupted
            running = None
        if running is None:
            if len(INPUTS) > MANY_DESCRIPTIONS and not HOLDING:
                forget_all()
            running = Running()
        self.active = True
        ACTIVE.add(self)
        running.users.append(self)
        # With its user from the first moment on: a signal handler can record too, and ends recorders without a user.
        Recorder.running = running
        running.settle()
        self._dropped_before = running.dropped()
        self._marks = {source.name: source.mark() for source in running.sources
                       if source is not running.calls and source.wanted(self.options)}
        self.parts["scopes"] = []  # scopes open at the end of an earlier stretch may end now
        self.begin_time()
        self._own_marks = {source.name: source.mark() for source in self.own if source.on}
        if self.options.stacks:
            # Last, so that the calls of starting are not part of the recording.
            self._marks[running.calls.name] = running.calls.mark()

    def stop(self) -> None:
        """End and keep what was recorded; may be called when not active."""
        if not self.active:
            return
        try:
            with Recorder.lock:
                self._end()
            # Last: waiting must not keep threads recording.
            stretch = Stretch(self.start_ns, self.end_ns, True, self.labels)
            for source in self.own:
                if source.on:
                    part = source.take(self._own_marks[source.name], stretch)
                    self.parts[source.name] = [*self.taken(source.name), part]
                    source.on = False
        except BaseException:
            try:
                with Recorder.lock:
                    self._end()  # take what was not taken yet
            finally:
                self.abandon()
            raise
        _let_go()

    def _end(self) -> None:
        running = Recorder.running
        if running is None or not self.active:
            self.active = False
            return
        failures = Failures()
        last = running.users == [self]
        if last:
            # First, so that nothing begins on other threads while this thread takes what there is.
            running.ops.pause()
        self.end_ns = clock()
        stretch = Stretch(self.start_ns, self.end_ns, last, self.labels)
        # Calls first, because they continue during this; ops need the names of modules.
        for source in (running.calls, *(s for s in running.sources if s not in (running.calls, running.ops)),
                       running.ops):
            if source.name in self._marks and source.on:
                mark = self._marks[source.name]
                part = failures.attempt(partial(source.take, mark, stretch), again=True)
                if part is not None:
                    stretch.taken[source.name] = part
        dropped = self.dropped + running.dropped() - self._dropped_before
        parts = {name: [*self.parts.get(name, ()), *([stretch.taken[name]] if name in stretch.taken else ())]
                 for name in (*self.parts, *stretch.taken)}
        HOLDING.add(weakref.ref(self, HOLDING.discard))
        self.parts, self._marks, self.dropped, self._dropped_before = parts, {}, dropped, running.dropped()
        failures.attempt(self._leave, again=True)
        failures.settle()

    def _leave(self) -> None:
        """Leave what the active recorders share; it ends with the last of them."""
        running = Recorder.running
        self._marks = {}
        if running is not None:
            if self in running.users:
                running.users.remove(self)
            running.settle()
            if not running.users and Recorder.running is running:
                Recorder.running = None
        ACTIVE.discard(self)
        self.active = False

    def abandon(self) -> None:
        """Leave, in whatever state an interrupt has left things. What was not taken yet is lost."""
        try:
            with Recorder.lock:
                self._leave()
        finally:
            let_go(Recorder.lock)
            for source in self.own:
                source.stop()
                source.on = False

    def begin_time(self) -> None:
        """Set the start of the recording, if it is not known yet."""
        if not self.start_ns:
            self.epoch_ns = time.time_ns() - clock()
            self.start_ns = clock()

    def taken_out(self, names: Callable[[Modules], dict[int, ModuleName]]) -> Recorder | None:
        """What has been recorded so far and grows with time, as a stopped recorder; the sources drop it.

        None while other recorders are active, because they need it too, or while this one is not. The caller has the
        lock.
        """
        running, marks = Recorder.running, self._marks
        if running is None or running.users != [self] or "ops" not in marks:
            return None
        part = Recorder(self.options)
        part.start_ns, part.epoch_ns, part.steps_ns = self.start_ns, self.epoch_ns, list(self.steps_ns)
        part.notes_taken, part.waits_taken = self.notes_taken, self.waits_taken
        modules = names(running.modules) if "modules" in marks else {}
        part.parts["ops"] = [[Piece(events, lane.info, lane.ident, modules) for lane in list(running.ops.lanes)
                              if len(events := drained(lane.events, marks["ops"].get(lane, 0)))]]
        marks["ops"] = {}
        if "memory" in marks:
            mark = marks["memory"]
            changes = MEMORY.drain()
            part.parts["memory"] = [MemoryPart(tuple(column[mark.changes:] for column in changes), mark.live_bytes,
                                               running.memory.failures[mark.failures:])]
            marks["memory"] = running.memory.mark()
        part.end_ns = clock()
        if "calls" in marks:
            part.calls_taken = running.calls.drained(marks["calls"], part.end_ns)
            part.parts["calls"] = [list(part.calls_taken.values())]
        part._marks = marks
        return part

    def goes_on_after(self, part: Recorder) -> None:
        """A trace was made of what was taken out; what it left over, such as open calls, belongs to the rest."""
        self.notes_taken, self.waits_taken = part.notes_taken, part.waits_taken
        if part.calls_taken:
            marks = part._marks  # the marks of its own stretch: there may be another by now
            marks["calls"] = mark_after(marks["calls"], part.calls_taken)

    def step(self) -> None:
        """Mark the start of the next step."""
        self.steps_ns.append(clock())


ACTIVE: weakref.WeakSet[Recorder] = weakref.WeakSet()
# Recorders with events, whose inputs are numbers of descriptions. While there is none, descriptions may be dropped.
# This is not a WeakSet: its callback is Python code, and a Ctrl-C that comes during that is lost.
HOLDING: set[weakref.ref[Recorder]] = set()
MANY_DESCRIPTIONS = 4096
_DROPPED: list[Recorder] = []  # recorders whose profilers were dropped during a start or stop


def drop(recorder: Recorder) -> None:
    """A recorder's profiler was dropped. The garbage collector may find this out at any point in any code."""
    _DROPPED.append(recorder)
    if not is_mine(Recorder.lock) and not is_mine(processes.Children.lock):
        _let_go()


def _let_go() -> None:
    while _DROPPED:
        _DROPPED.pop().abandon()


def _forget_in_child() -> None:
    """A forked child does not record into its parent's recording and does not disturb it."""
    Recorder.lock = new_lock()
    processes.forget()
    running, Recorder.running = Recorder.running, None
    if running is not None:
        running.users.clear()
        running.settle()
    for recorder in list(ACTIVE):
        recorder.active = False
    ACTIVE.clear()
    for state in list(STATES):
        state.record_into(NOWHERE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
