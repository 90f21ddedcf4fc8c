"""`Pattern`: something in an event tree that a program can usually do better, with the text for it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mtprof.views.event_fields import EventType
from mtprof.views.event_tree import ProfilerEvent

from ._utils import NO_LOCATION, index_of_first_match, traverse_dfs

_PLACE = re.compile(r"(.*\.py)\((\d+)\)")
_NOT_THE_USERS = tuple(os.path.join(name, "") for name in (__name__.partition(".")[0], "torch"))


class Pattern:
    """Base of all patterns: `match` decides whether an event is an instance."""

    name = "Please specify a name for pattern"
    description = "Please specify a description for pattern"
    url = ""

    def __init__(self, prof: Any, should_benchmark: bool = False) -> None:
        self.prof = prof
        self.should_benchmark = should_benchmark
        session = prof.profiler
        if session is None or session.kineto_results is None:
            raise AssertionError("profiler and its kineto_results must not be None: the recording is not finished")
        self.event_tree: list[ProfilerEvent] = session.kineto_results.experimental_event_tree()
        self.tid_root: dict[int, list[ProfilerEvent]] = {}
        for event in self.event_tree:
            self.tid_root.setdefault(event.start_tid, []).append(event)

    @property
    def skip(self) -> bool:
        """Whether the recording lacks data that the pattern needs."""
        return False

    def match(self, event: ProfilerEvent) -> bool:
        """Whether an event is an instance of the pattern."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it matches")

    def eventTreeTraversal(self) -> Iterable[ProfilerEvent]:
        """The events in the order in which they are checked."""
        yield from traverse_dfs(self.event_tree)

    def matched_events(self) -> list[ProfilerEvent]:
        """All instances."""
        return [] if self.skip else [event for event in self.eventTreeTraversal() if self.match(event)]

    # -- texts -----------------------------------------------------------------------------------------------------

    def report(self, event: ProfilerEvent) -> str:
        """The text for one instance, with its place in the program."""
        return f"{self.description}\n[Source Code Location] {source_code_location(event)}"

    def summary(self, events: Sequence[ProfilerEvent]) -> str:
        """The text for all instances."""
        default = f"{self.name}: {len(events)} events matched."
        return self.benchmark_summary(events) if self.should_benchmark and hasattr(self, "benchmark") else default

    def benchmark_summary(self, events: Sequence[ProfilerEvent]) -> str:
        """The text for the time that all instances might save, by measuring the alternative now."""
        factors = self.benchmark(events)  # type: ignore[attr-defined]
        before = sum(event.duration_time_ns for event in events)
        after = sum(factors[input_shapes(event)] * event.duration_time_ns for event in events)
        return (f"{self.name}: {len(events)} events matched. Total Estimated Speedup: {_in_unit(before - after)} "
                f"({before / after if after else 1.0:.2f}X)")

    # -- neighbours ------------------------------------------------------------------------------------------------

    def root_of(self, event: ProfilerEvent) -> ProfilerEvent:
        """The outermost event around an event."""
        while event.parent is not None:
            event = event.parent
        return event

    def siblings_of(self, event: ProfilerEvent) -> tuple[Sequence[ProfilerEvent], Sequence[ProfilerEvent]]:
        """The events before and after an event, in the same parent."""
        among = event.parent.children if event.parent is not None else self.tid_root[event.start_tid]
        place = index_of_first_match(among, lambda other: other is event)
        if place is None:
            raise AssertionError(f"{event.name} is not part of this tree")
        return among[:place], among[place + 1:]

    def next_of(self, event: ProfilerEvent) -> ProfilerEvent | None:
        """The event after an event, or None."""
        after = self.siblings_of(event)[1]
        return after[0] if after else None

    def prev_of(self, event: ProfilerEvent) -> ProfilerEvent | None:
        """The event before an event, or None."""
        before = self.siblings_of(event)[0]
        return before[-1] if before else None

    def go_up_until(self, event: ProfilerEvent | None,
                    predicate: Callable[[ProfilerEvent], bool]) -> ProfilerEvent | None:
        """The nearest fitting event at or above an event, or the outermost one if none fits; None for None."""
        while event is not None and event.parent is not None and not predicate(event):
            event = event.parent
        return event


def source_code_location(event: ProfilerEvent | None) -> str:
    """`file.py:line` of the nearest Python call of the user's program at or above an event."""
    while event is not None:
        if event.tag is EventType.PyCall:
            found = _PLACE.match(event.name)
            if found is not None and not found[1].startswith(_NOT_THE_USERS):
                return f"{found[1]}:{found[2]}"
        event = event.parent
    return NO_LOCATION


def input_shapes(event: ProfilerEvent) -> tuple[tuple[int, ...], ...]:
    """Sizes of an op's tensor arguments."""
    return tuple(tuple(getattr(given, "sizes", ())) for given in _op_inputs(event))


def input_dtypes(event: ProfilerEvent) -> tuple[Any, ...]:
    """Element types of an op's tensor arguments, None for other arguments."""
    return tuple(getattr(given, "dtype", None) for given in _op_inputs(event))


def _op_inputs(event: ProfilerEvent) -> list[Any]:
    if event.tag is not EventType.TorchOp:
        raise AssertionError(f"{event.name} is not an op")
    return event.extra_fields.inputs


def _in_unit(time_ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(time_ns) >= size:
            return f"{time_ns / size:.2f}{unit}"
    return f"{time_ns:.0f}ns"
