"""The sources that are running, and the recorders that need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..sources.base import Source
from ..sources.garbage import Garbage
from ..sources.holders import Holders
from ..sources.memory import Memory
from ..sources.modules import Modules
from ..sources.ops import Ops
from ..sources.python_calls import Calls
from ..sources.scopes import Scopes
from ..sources.tensors import Tensors

if TYPE_CHECKING:
    from .recorder import Recorder


class Failures:
    """Runs steps that must all run, even if others fail, and then raises the first error."""

    def __init__(self) -> None:
        self.first: BaseException | None = None

    def attempt(self, step: Callable[[], Any], again: bool = False) -> Any:
        """Run a step; returns its result, or None if it failed. A repeatable step that failed runs again."""
        for _ in range(1 + again):
            try:
                return step()
            except BaseException as error:
                self.first = self.first or error
        return None

    def settle(self) -> None:
        """Raise the first error, if there was one."""
        if self.first is not None:
            try:
                raise self.first
            finally:
                self.first = None  # avoids a cycle: it refers to this frame


class Running:
    """All sources, in the order in which they start; they stop in reverse.

    Active recorders share it. After any failure in here, another `settle` brings sources in line with the active
    recorders: a source counts as on from before it starts until after it has stopped.
    """

    def __init__(self) -> None:
        self.users: list[Recorder] = []
        self.ops = Ops(self)
        self.scopes = Scopes(self)
        self.memory = Memory(self)
        self.tensors = Tensors(self)
        self.modules = Modules(self)
        self.holders = Holders(self)
        self.garbage = Garbage(self)
        self.calls = Calls(self)  # last, so that the calls of starting are not recorded
        self.sources: tuple[Source, ...] = (self.scopes, self.ops, self.memory, self.tensors, self.modules,
                                            self.holders, self.garbage, self.calls)

    def limit(self) -> int | None:
        """The limit of events, and of Python calls."""
        return min((u.options.max_events for u in self.users if u.options.max_events is not None), default=None)

    def dropped(self) -> int:
        """The number of events beyond the limit."""
        return self.ops.buffers.dropped + self.calls.budget.dropped

    def settle(self) -> None:
        """Run the sources that recorders need, and no others."""
        wishes = [user.options for user in self.users]
        failures = Failures()
        for source in reversed(self.sources):
            if source.on and not any(map(source.wanted, wishes)):
                failures.attempt(source.stop, again=True)
                source.on = False
        failures.settle()
        for source in self.sources:
            if any(map(source.wanted, wishes)):
                if not source.on:
                    source.on = True
                    source.start()
                source.adapt(wishes)

    # -- what sources hear from each other -------------------------------------------------------------------------

    def first_call(self, module: Any) -> None:
        """A module is called for the first time: record what it holds."""
        if self.holders.on:
            self.holders.module(module)
        if self.tensors.owners is not None:
            self.tensors.owners.module(module)

    def stepped(self, optimizer: Any) -> None:
        """An optimizer made a step: record what it works on."""
        if self.holders.on:
            self.holders.stepped(optimizer)
        if self.tensors.owners is not None:
            self.tensors.owners.stepped(optimizer)
