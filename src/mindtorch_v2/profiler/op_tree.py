"""`OpTree`: an event tree for analyses of memory, and the memory profile that has one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from mtprof.trace import Trace
from mtprof.views.event_fields import EventType, RecordScope
from mtprof.views.event_tree import ProfilerEvent
from mtprof.views.memory_profile import MemoryProfile

from ._utils import traverse_dfs
from .result import VALUES, ProfilerResult


class OpTree:
    """All events of a finished recording."""

    def __init__(self, result: ProfilerResult) -> None:
        self._root_nodes = result.experimental_event_tree()
        self._sorted_nodes = tuple(sorted(self.dfs(), key=lambda event: event.start_time_ns))

    def dfs(self, *args: Any, **kwargs: Any) -> Iterator[ProfilerEvent]:
        """Each event before those inside it; takes the arguments of `traverse_dfs`."""
        yield from traverse_dfs(self._root_nodes, *args, **kwargs)

    @property
    def sorted_nodes(self) -> tuple[ProfilerEvent, ...]:
        """The events in the order in which they started."""
        return self._sorted_nodes


def get_scopes(event: ProfilerEvent | None) -> tuple[RecordScope, ...]:
    """The scopes of an op and of all ops around it, innermost first."""
    found = []
    while event is not None:
        if event.tag is EventType.TorchOp:
            found.append(event.extra_fields.scope)
        event = event.parent
    return tuple(found)


class MemoryProfileOfResult(MemoryProfile):
    """The memory of a finished recording, with its events."""

    def __init__(self, result: ProfilerResult, trace: Trace) -> None:
        super().__init__(trace, VALUES)
        self._result = result

    @cached_property
    def _op_tree(self) -> OpTree:
        return OpTree(self._result)
