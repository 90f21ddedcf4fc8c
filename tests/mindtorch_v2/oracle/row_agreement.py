"""How far the rows of two profiles of the same program agree.

A row is what a profile's table shows: a name (with input shapes, if asked) and how often it came. Precision is the
share of our rows that the other profile has as well, recall the share of its rows that we have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class Event(NamedTuple):
    """What is compared of an event; plain enough for JSON."""

    name: str
    shapes: str
    top: bool


class Agreement(NamedTuple):
    """Shares in 0..1."""

    precision: float
    recall: float
    f1: float


def events_of(prof: Any) -> list[Event]:
    """The events of a profiler of either module, in its order."""
    return [Event(e.name, str(e.input_shapes), e.cpu_parent is None) for e in prof.events()]


def top_level(events: Iterable[Event]) -> list[str]:
    """The names of the events that have no other around them."""
    return [event.name for event in events if event.top]


def counts(events: Iterable[Event], with_shapes: bool = False) -> Counter[Any]:
    """How often each name, or each pair of name and shapes, came."""
    return Counter((event.name, event.shapes) if with_shapes else event.name for event in events)


def agreement(got: Iterable[Event], want: Iterable[Event], with_shapes: bool = False) -> Agreement:
    """Compare rows; a row with another count is another row."""
    mine, other = (set(counts(events, with_shapes).items()) for events in (got, want))
    common = len(mine & other)
    return Agreement(common / len(mine), common / len(other), 2 * common / (len(mine) + len(other)))


def only_here(got: Iterable[Event], want: Iterable[Event]) -> dict[str, int]:
    """The names that the other profile does not show at all, with our count."""
    known = {event.name for event in want}
    return dict(counts(event for event in got if event.name not in known))


def report(pairs: dict[str, tuple[list[Event], list[Event]]]) -> str:
    """A table over programs, and below it the names that only we show."""
    width = max(map(len, pairs)) + 2
    lines = [f"{'':{width}}        (name, count)             (name, shapes, count)",
             f"{'':{width}}precision recall    F1   precision recall    F1"]
    for program, (got, want) in pairs.items():
        plain, shaped = agreement(got, want), agreement(got, want, with_shapes=True)
        lines.append(f"{program:{width}}" + "   ".join(f"{a.precision:>9.2f} {a.recall:>6.2f} {a.f1:>5.2f}"
                                                       for a in (plain, shaped)))
    for program, (got, want) in pairs.items():
        invented = only_here(got, want)
        if invented:
            found = ", ".join(f"{name} ({count})" for name, count in sorted(invented.items()))
            lines.append(f"{program}, only here: {found}")
    return "\n".join(lines)
