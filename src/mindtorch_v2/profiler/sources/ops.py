"""Records ops, backward functions, ended scopes and calls of modules: everything that threads append to their
buffers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mtprof.trace import ThreadInfo

from ..._dispatch.observer import describe, observe, unobserve
from ..._dispatch.state import NOWHERE, STATES, ThreadState
from ..locks import items_now
from ..options import Options
from .base import Source, Stretch
from .buffers import Buffers, Events, since
from .modules import ModuleName

if TYPE_CHECKING:
    from ..recorder.running import Running


@dataclass(eq=False)
class Lane:
    """The events of one thread."""

    events: Events
    info: ThreadInfo
    ident: int


@dataclass(frozen=True)
class Piece:
    """The part of a lane that belongs to one recorder."""

    events: Events
    info: ThreadInfo
    ident: int
    modules: dict[int, ModuleName] = field(default_factory=dict)  # by the identity in module events
    record_ids: dict[int, int] = field(default_factory=dict)  # see `Ops`
    begin: int = 0  # where in the lane this part began


class Ops(Source):
    """A buffer per thread, present and future, to which the runtime's functions append."""

    name = "ops"
    tables = ("events",)
    cost = "two readings of the clock and a row of five numbers an event"

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.buffers = Buffers()
        self.lanes: list[Lane] = []
        # Numbers that an execution trace gave to events, by the identity of the buffer and its length after the event.
        self.record_ids: dict[int, dict[int, int]] = {}

    def wanted(self, options: Options) -> bool:
        """Always."""
        return True

    def start(self) -> None:
        """Give every thread a buffer, then raise the flag that ops check."""
        observe(self.new_thread)

    def adapt(self, wishes: Sequence[Options]) -> None:
        """Describe arguments if a recorder needs it."""
        describe(any(options.shapes for options in wishes))

    def pause(self) -> None:
        """Let nothing more begin, before sources are asked for their results."""
        unobserve()

    def stop(self) -> None:
        """Lower the flag. Drop the buffers, so that a finished recording is freed with its profiler.

        Ops that still run on other threads append to their old buffer, which nothing reads any more.
        """
        unobserve()
        describe(False)
        for state in list(STATES):
            state.record_into(NOWHERE)

    def new_thread(self, state: ThreadState) -> None:
        """Give a thread a buffer to write to."""
        thread = state.thread()
        name = thread.name if thread is not None else ""
        running = self.all
        if running is None:
            return
        events = self.buffers.give(state, running.limit())
        self.lanes.append(Lane(events, ThreadInfo(os.getpid(), state.native_id, name), state.ident))
        running.calls.joined()

    def mark(self) -> dict[Lane, int]:
        """The lengths of the buffers."""
        return {lane: len(lane.events) for lane in list(self.lanes)}

    def take(self, mark: dict[Lane, int], stretch: Stretch) -> list[Piece]:
        """A piece for each thread on which something has happened."""
        modules: dict[int, ModuleName] = stretch.taken.get("modules", {})
        pieces = []
        for lane in list(self.lanes):
            begin = mark.get(lane, 0)
            if len(lane.events) > begin:
                # A lane that no other recorder reads is passed on without a copy; it can be gigabytes.
                events = lane.events if stretch.last and begin == 0 else since(lane.events, begin)
                pieces.append(Piece(events, lane.info, lane.ident, modules,
                                    dict(items_now(self.record_ids.get(id(lane.events), {}))), begin))
        return pieces

    def threads(self) -> dict[int, ThreadInfo]:
        """The threads that have a buffer, by their idents."""
        return {lane.ident: lane.info for lane in list(self.lanes)}

    def note_record_id(self, events: Any, record_id: int) -> None:
        """Set the number in an execution trace of the event that was just appended to a buffer.

        If the event did not fit, the number belongs to the event before it.
        """
        self.record_ids.setdefault(id(events), {}).setdefault(len(events), record_id)
