"""What a recording is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What to record besides names and times of ops and scopes."""

    shapes: bool = False  # descriptions of ops' arguments
    memory: bool = False  # allocations and releases
    stacks: bool = False  # Python calls, and from them the stack of each event
    modules: bool = False  # the module that each event ran in
    flops: bool = False  # worked out from shapes, afterwards
    collections: bool = False  # pauses of Python's garbage collector
    save_to: str | None = None  # a file that gets what is recorded while it is
    max_events: int | None = None  # how many events, and how many Python calls, to keep at most

    @property
    def tensors(self) -> bool:
        """Whether to note which memory ops use; not where a file gets it, which is put in order when it is read."""
        return self.shapes and self.memory and self.save_to is None

    @property
    def timeline(self) -> bool:
        """Whether to note whose memory it is, too: where a memory timeline can be asked for."""
        return self.tensors and self.stacks
