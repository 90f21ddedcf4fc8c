"""`record_function`: names a stretch of the user's program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .._dispatch.describe import describe_all
from .._dispatch.observer import HOOK, event_id
from .._dispatch.state import THREAD
from .sources.scopes import OPEN

if TYPE_CHECKING:
    from ..futures import Future

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

    __slots__ = ("args", "name", "noted", "place", "run_callbacks_on_exit", "start")
    kind = "scope"

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.start: int | None = None  # when it began; 0 if nothing recorded then, or after its end
        self.place = 0  # the line in which it began, in the upper part of a number
        self.noted: Any = None  # what a tap knows about this scope
        self.run_callbacks_on_exit = True  # whether the end of the block is the end of the scope

    def __enter__(self) -> record_function:
        if type(self.name) is not str and not isinstance(self.name, str):
            raise RuntimeError("profiler::_record_function_enter_new() Expected a value of type 'str' for argument "
                               f"'name' but instead found type '{type(self.name).__name__}'.")
        if self.args is not None and not isinstance(self.args, (str, bytes)):
            raise RuntimeError("profiler::_record_function_enter_new() Expected a value of type 'Optional[str]' for "
                               f"argument 'args' but instead found type '{type(self.args).__name__}'.")
        if self.start:
            self._end()  # as in PyTorch, beginning again ends the scope first
        self.start = 0
        if HOOK["OBSERVING"]:
            listener = HOOK["TAP"]
            if listener is not None:
                self.noted = listener.enter(event_id(self.name, self.kind), -1, self.values())
            OPEN[self] = get_ident()
            self.place = HOOK["place"]() if HOOK["CALLS"] else 0
            self.start = clock()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.start and self.run_callbacks_on_exit:
            self._end()
        elif self.start is None:
            raise AssertionError("Expected record to be set")

    def _end(self) -> None:
        # On the thread that closes it: a scope opened elsewhere is recorded as a whole on this thread.
        given = None if self.args is None else describe_all(self.values())
        THREAD.state.extend((event_id(self.name, self.kind), self.start, clock(), self.place - 1, given))
        self.start = 0
        OPEN.pop(self, None)
        if self.noted is not None:
            self.noted.leave()
            self.noted = None

    def _call_end_callbacks_on_future(self, fut: Future[Any]) -> Future[Any]:
        """Let the scope end when a future is completed, not with its block.

        Returns a future of the same value, which is completed after that. Use it for work that a block starts without
        waiting for it. It may be called once.
        """
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False

        def ended(done: Future[Any]) -> Any:
            if self.start:
                self._end()
            return done.value()

        return fut.then(ended)

    def values(self) -> tuple[Any, ...]:
        """The arguments of the scope besides its name."""
        return () if self.args is None else (self.args,)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return inside


class step_scope(record_function):
    """`ProfilerStep#N`: like a user's scope, but views know it as a step."""

    __slots__ = ()
    kind = "step"


class scope_with_values(record_function):
    """A scope with any values, which an execution trace lists as its inputs."""

    __slots__ = ("given",)

    def __init__(self, name: str, given: tuple[Any, ...]) -> None:
        super().__init__(name, "" if given else None)
        self.given = given

    def values(self) -> tuple[Any, ...]:
        """All the values."""
        return self.given


def _record_function_with_args_enter(name: str, *args: Any) -> scope_with_values:
    """Open a scope with values; `_record_function_with_args_exit` closes what this returns."""
    scope = scope_with_values(name, args)
    scope.__enter__()
    return scope


def _record_function_with_args_exit(scope: scope_with_values) -> None:
    """Close a scope that `_record_function_with_args_enter` opened."""
    scope.__exit__(None, None, None)
