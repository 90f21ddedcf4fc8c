"""`torch.monitor`: events that a program reports to handlers, and statistics over windows of time.

>>> seen = []
>>> handle = register_event_handler(seen.append)
>>> stat = Stat("loss", (Aggregation.SUM, Aggregation.COUNT), timedelta(hours=1), max_samples=2)
>>> stat.add(1.0)
>>> stat.add(2.0)
>>> sorted(seen[0].data.items())
[('loss.count', 2.0), ('loss.sum', 3.0)]
>>> unregister_event_handler(handle)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import Enum
from threading import RLock
from typing import Any

__all__ = ["Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event",
           "register_event_handler", "unregister_event_handler"]

STAT_EVENT = "torch.monitor.Stat"


class data_value_t:
    """A value of an event's data: a number or a text."""


class Aggregation(Enum):
    """How a statistic aggregates the values of a window."""

    VALUE = 1
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __int__(self) -> int:
        return self.value

    def __str__(self) -> str:
        return f"Aggregation.{self.name}"


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation


class Event:
    """Something that happened, with a name, a time and data."""

    def __init__(self, name: str, timestamp: datetime, data: Mapping[str, str | float]) -> None:
        sound = isinstance(name, str) and isinstance(timestamp, datetime) and isinstance(data, Mapping)
        if not sound or not all(isinstance(key, str) and isinstance(one, (str, int, float))
                                for key, one in data.items()):
            raise TypeError("__init__(): incompatible constructor arguments: an Event has a name, a datetime and data "
                            "that are texts and numbers")
        self.name, self.timestamp, self.data = name, timestamp, dict(data)


class EventHandlerHandle:
    """Stands for a handler that was registered."""

    def __init__(self, callback: Callable[[Event], Any]) -> None:
        self._callback = callback


_HANDLERS: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], Any]) -> EventHandlerHandle:
    """Call a function for each event from now on."""
    if not callable(callback):
        raise TypeError(f"register_event_handler(): incompatible function arguments: {callback!r} cannot be called")
    handle = EventHandlerHandle(callback)
    _HANDLERS.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Remove a handler."""
    if not isinstance(handler, EventHandlerHandle):
        raise TypeError(f"unregister_event_handler(): incompatible function arguments: {handler!r} is no handle")
    if handler in _HANDLERS:
        _HANDLERS.remove(handler)


def log_event(event: Event) -> None:
    """Give an event to all handlers."""
    if not isinstance(event, Event):
        raise TypeError(f"log_event(): incompatible function arguments: {event!r} is no Event")
    for handle in list(_HANDLERS):
        handle._callback(event)


_FORMULAS: dict[Aggregation, Callable[[list[float]], float]] = {
    VALUE: lambda values: values[-1], MEAN: lambda values: sum(values) / len(values), COUNT: lambda values: len(values),
    SUM: sum, MAX: max, MIN: min}


class Stat:
    """Aggregates the values of each window, and reports them when it is over or has `max_samples` values."""

    def __init__(self, name: str, aggregations: Sequence[Aggregation], window_size: timedelta,
                 max_samples: int = 0) -> None:
        if not isinstance(name, str) or not isinstance(window_size, timedelta) or isinstance(aggregations, str) or (
                not isinstance(aggregations, Sequence) or not all(type(one) is Aggregation for one in aggregations)):
            raise TypeError("__init__(): incompatible constructor arguments: a Stat has a name, a sequence of "
                            "Aggregation and a timedelta")
        self._name, self._aggregations, self._most = name, tuple(aggregations), max_samples
        self._seconds = window_size.total_seconds()
        self._lock = RLock()
        self._window = self._now()
        self._reported = False  # whether this window was full already
        self._values: list[float] = []
        self._last: list[float] = []

    @property
    def name(self) -> str:
        """The name that the events' data begin with."""
        return self._name

    @property
    def count(self) -> int:
        """The number of values in this window."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Add a value to this window; nothing if it was full and is reported."""
        value = float(v)
        with self._lock:
            self._close_window()
            if self._reported:
                return
            self._values.append(value)
            if self._most and len(self._values) >= self._most:
                self._report()
                self._reported = True

    def get(self) -> dict[Aggregation, float]:
        """The last report; zeros before the first."""
        with self._lock:
            return {one: self._of(one) for one in self._aggregations}

    def _now(self) -> int:
        return int(time.monotonic() // self._seconds) if self._seconds > 0 else 0

    def _of(self, one: Aggregation) -> float:
        return float(_FORMULAS[one](self._last)) if self._last else 0.0

    def _close_window(self) -> None:
        """Report the window if it is over, and begin another."""
        now = self._now()
        if now != self._window:
            self._window = now
            if self._values:
                self._report()
            self._reported = False

    def _report(self) -> None:
        self._last, self._values = self._values, []
        log_event(Event(STAT_EVENT, datetime.now(), {f"{self._name}.{one.name.lower()}": self._of(one)
                                                      for one in self._aggregations}))

    def __del__(self) -> None:
        if self.__dict__.get("_values"):
            self._report()


class TensorboardEventHandler:
    """Writes the numbers of statistics to a `SummaryWriter`.

    Register an instance with `register_event_handler`.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """A name for waits; nobody counts them here."""

    def __init__(self, key: str) -> None:
        self.key = key

    @contextmanager
    def guard(self) -> Iterator[None]:
        """A wait."""
        yield
