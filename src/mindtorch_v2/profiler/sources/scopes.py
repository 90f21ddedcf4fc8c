"""Scopes that are open when a recording ends: they are part of it, up to the end of the event around them.

A scope that is closed in a later recording is not part of that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from mtprof.trace import ThreadInfo

from ..._dispatch.observer import event_id
from ..locks import items_now
from ..options import Options
from .base import Source, Stretch


class Scope(Protocol):
    """What is known about a scope."""

    name: str
    kind: str
    start: int | None


class OpenScope(NamedTuple):
    """A scope of a recording that has not ended."""

    event: int  # its id
    start_ns: int
    thread: ThreadInfo


# Scopes, with the idents of their threads. They add and remove themselves.
OPEN: dict[Scope, int] = {}


class Scopes(Source):
    """The scopes that have begun but not ended; ended scopes are in the buffers of `ops`."""

    name = "scopes"
    tables = ("events",)
    cost = "an entry in a dictionary while a scope is open"

    def wanted(self, options: Options) -> bool:
        """Always."""
        return True

    def start(self) -> None:
        """Forget all open scopes."""
        OPEN.clear()

    def stop(self) -> None:
        """Forget open scopes: their ends are not part of any recording."""
        OPEN.clear()

    def mark(self) -> None:
        """Set the start of a scope."""

    def take(self, mark: None, stretch: Stretch) -> list[OpenScope]:
        """The scopes that began in the recording, on threads that are part of it.

        A thread that was about to begin one when the recording ended has begun it since.
        """
        threads = {} if self.all is None else self.all.ops.threads()
        return [OpenScope(event_id(scope.name, scope.kind), scope.start, threads[ident])
                for scope, ident in items_now(OPEN)
                if scope.start is not None and stretch.start_ns <= scope.start <= stretch.end_ns and ident in threads]


Spans = Callable[[ThreadInfo], tuple[np.ndarray, np.ndarray]]


def ends(scopes: list[OpenScope], spans: Spans, end_ns: int) -> list[int]:
    """When each scope ends: with the innermost event around its start, or with the recording."""
    result = []
    for scope in scopes:
        start, end = spans(scope.thread)
        around = (start <= scope.start_ns) & (end >= scope.start_ns)
        result.append(int(end[around].min(initial=end_ns)))
    return result
