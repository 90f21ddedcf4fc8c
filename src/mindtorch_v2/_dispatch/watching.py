"""A tap that looks at ops and lets them run unchanged (see `observer.tap`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from .dispatcher import compile_op
from .registry import Op


class _Thread(threading.local):
    """A thread's answer to the op that asks next."""

    skip = False  # it was already looked at
    passing = False  # it is for the next tap under this one
    quiet = 0  # number of contexts that hide ops


class Watcher:
    """Looks at every op; composite ops first, then their parts. `watch` says what it does."""

    under: Any = None  # the next tap: modes, an execution trace

    def __init__(self) -> None:
        self.mine = _Thread()

    def wants(self) -> bool:
        """Whether this thread's ops are looked at."""
        return True

    def watch(self, op: Op, inplace: bool, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Run an op by `looked_at`, and do the work of this tap."""
        raise NotImplementedError

    def looked_at(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call an op's function, which must not ask again."""
        self.mine.skip = True
        try:
            return function(**arguments)
        finally:
            self.mine.skip = False

    def __enter__(self) -> None:
        """Ops inside are not looked at."""
        self.mine.quiet += 1

    def __exit__(self, *exc: object) -> None:
        self.mine.quiet -= 1

    def takes(self) -> bool:
        """Whether this tap looks at the op that asks."""
        mine = self.mine
        if mine.skip:
            mine.skip = False
        elif not mine.quiet and self.wants():
            return True
        mine.passing = self.under is not None and self.under.takes()
        return mine.passing

    def run(self, op: Op, inplace: bool, arguments: dict[str, Any]) -> Any:
        """Run an op whose turn it is."""
        mine = self.mine
        if not mine.passing:
            return self.watch(op, inplace, compile_op(op, inplace), arguments)
        mine.passing, mine.skip = False, True
        try:
            return self.under.run(op, inplace, arguments)
        finally:
            mine.skip = False

    def enter(self, event: int, seq: int, given: Any, *graph_node: Any) -> Any:
        """Spans that are not ops mean nothing to it."""
        return None if self.under is None else self.under.enter(event, seq, given, *graph_node)

    def hidden(self) -> Any:
        """A context for a function that is one op in PyTorch, although it is made of ops here."""
        return getattr(self.under, "hidden", nullcontext)()
