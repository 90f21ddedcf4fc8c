"""Scopes that are open when a recording ends: they are part of it, up to the end of what they are in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from ..._dispatch.observer import event_id
from ..trace import ThreadInfo


class Scope(Protocol):
    """What is known of a scope."""

    name: str
    kind: str
    start: int


class OpenScope(NamedTuple):
    """A scope of a recording that has not ended."""

    event: int  # its id
    start_ns: int
    thread: ThreadInfo


# Scopes, with the idents of their threads. They put themselves in and take themselves out.
OPEN: dict[Scope, int] = {}


def open_since(start_ns: int, threads: Mapping[int, ThreadInfo]) -> list[OpenScope]:
    """The scopes that began at this time or later, on threads that are given by their idents."""
    return [OpenScope(event_id(scope.name, scope.kind), scope.start, threads[ident])
            for scope, ident in list(OPEN.items()) if scope.start >= start_ns and ident in threads]


Spans = Callable[[ThreadInfo], tuple[np.ndarray, np.ndarray]]


def ends(scopes: list[OpenScope], spans: Spans, end_ns: int) -> list[int]:
    """When each scope ends: with the innermost event around its begin, or else with the recording."""
    result = []
    for scope in scopes:
        start, end = spans(scope.thread)
        around = (start <= scope.start_ns) & (end >= scope.start_ns)
        result.append(int(end[around].min(initial=end_ns)))
    return result
