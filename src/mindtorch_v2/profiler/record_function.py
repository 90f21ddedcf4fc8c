"""`record_function`: a named stretch of the user's program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._dispatch.describe import describe_all
from .._dispatch.observer import HOOK, event_id
from .._dispatch.state import THREAD

clock = HOOK["clock"]


class record_function:
    """Give a block or a function a name in the profile. Outside a profile it does nothing.

    >>> import mindtorch_v2 as torch
    >>> with torch.profiler.profile() as prof:
    ...     with torch.profiler.record_function("mine"):
    ...         y = torch.ones(2) + 1
    >>> "mine" in [e.name for e in prof.events()]
    True
    """

    __slots__ = ("args", "name", "start")

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.start = 0

    def __enter__(self) -> record_function:
        if HOOK["OBSERVING"]:
            self.start = clock()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.start:
            # On the thread that closes it: a scope opened elsewhere still ends up whole, on this thread.
            given = None if self.args is None else describe_all((self.args,))
            THREAD.state.extend((event_id(self.name, "scope"), self.start, clock(), -1, given))
            self.start = 0

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return inside


class step_scope(record_function):
    """`ProfilerStep#N`: like a user's scope, but known as a step to the views."""

    __slots__ = ()

    def __exit__(self, *exc: object) -> None:
        if self.start:
            THREAD.state.extend((event_id(self.name, "step"), self.start, clock(), -1, None))
            self.start = 0
