"""Where threads append their events: lists, or the buffers of the C twin. Other code does not know which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.native import NATIVE
from ..._dispatch.observer import FIELDS
from ..._dispatch.state import ThreadState

Events = Any  # list[int | None], FIELDS items per event, or NATIVE.EventBuffer


class PythonBuffers:
    """A list per thread."""

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []
        self.dropped = 0

    def give(self, state: ThreadState, limit: int | None) -> Events:
        """Let a thread write to a new list, while all lists together hold fewer events than the limit."""
        events: list[Any] = []
        self.lists.append(events)
        state.record_into(events)
        if limit is not None:
            state.extend = self.bounded(events, limit * FIELDS)  # type: ignore[method-assign,unused-ignore]
        return events

    def bounded(self, events: list[Any], room: int) -> Callable[[tuple[Any, ...]], None]:
        """The list's `extend`, up to a total length of all lists."""
        keep = events.extend
        lists = self.lists

        def extend(event: tuple[Any, ...]) -> None:
            if len(events) < room and (len(lists) == 1 or sum(map(len, lists)) < room):
                keep(event)
            else:
                self.dropped += 1

        return extend


class NativeBuffers:
    """A table of integers per thread, in C."""

    def __init__(self) -> None:
        self.budget = NATIVE.Budget()  # type: ignore[union-attr]

    @property
    def dropped(self) -> int:
        """The number of events that did not fit."""
        return self.budget.dropped

    def give(self, state: ThreadState, limit: int | None) -> Events:
        """Let a thread write to a new buffer, while all buffers together hold fewer events than the limit."""
        events = NATIVE.EventBuffer(self.budget, -1 if limit is None else limit)  # type: ignore[union-attr]
        state.record_into(events)
        return events


Buffers = PythonBuffers if NATIVE is None else NativeBuffers


def since(events: Events, begin: int) -> Events:
    """A copy of what was appended after `len(events)` was `begin`."""
    return events[begin:] if isinstance(events, list) else events.since(begin)


def drained(events: Events, begin: int) -> Events:
    """What was appended after `len(events)` was `begin`; it is taken out, and everything before it is dropped."""
    if not isinstance(events, list):
        return events.drain(begin)
    size = len(events) // FIELDS * FIELDS
    part = events[begin:size]
    del events[:size]
    return part


def count_of(events: Events) -> int:
    """The number of events."""
    return len(events) // FIELDS if isinstance(events, list) else len(events)


def columns_of(events: Events) -> tuple[np.ndarray, ...]:
    """Id, start, end, sequence number and inputs (-1 for none) of all events, as int64 arrays."""
    if not isinstance(events, list):
        return events.columns()
    # A thread may be appending its last event right now; only complete records count.
    size = len(events) // FIELDS * FIELDS
    *numbers, inputs = (events[i:size:FIELDS] for i in range(FIELDS))
    return (*(np.array(column, np.int64) for column in numbers),
            np.array([-1 if value is None else value for value in inputs], np.int64))
