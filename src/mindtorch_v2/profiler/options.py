"""The options of a recording."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What to record besides names and times of ops and scopes."""

    shapes: bool = False  # descriptions of ops' arguments
    memory: bool = False  # allocations and releases
    stacks: bool = False  # Python calls, and from them the stack of each event
    modules: bool = False  # the module that each event ran in
    flops: bool = False  # computed from shapes, afterwards
    collections: bool = False  # pauses of Python's garbage collector
    save_to: str | None = None  # a file that gets events while the recording runs
    max_events: int | None = None  # limit of events, and of Python calls

    @property
    def tensors(self) -> bool:
        """Whether to record which memory ops use; not with `save_to`, whose file is put in order when it is read."""
        return self.shapes and self.memory and self.save_to is None

    @property
    def timeline(self) -> bool:
        """Whether to record the owners of memory too: if a memory timeline can be requested."""
        return self.tensors and self.stacks
