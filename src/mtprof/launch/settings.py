"""The settings that `mtprof run` gives to the child: plain values, as JSON in its first argument."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace

RANK_MARK = "{rank}"

PROGRAM = "program"  # the metadata key that says what ran: command line, versions, machine


@dataclass(frozen=True)
class Settings:
    """How to run and record a program."""

    runtime: str  # "mindtorch_v2" or "torch"
    alias: bool  # whether `import torch` means mindtorch_v2
    how: str  # "script", "module" or "code"
    program: str  # path, name or text
    arguments: list[str]
    recording: str  # file to write; a later cycle of a schedule gets a number before the suffix
    flags: dict[str, bool] = field(default_factory=dict)  # record_shapes, profile_memory, with_stack, …
    max_events: int | None = None
    stream: bool = False  # write the recording while the program runs
    first_step: int | None = None  # steps to record, both included
    last_step: int | None = None
    schedule: dict[str, int] | None = None  # arguments of torch.profiler.schedule
    after_s: float | None = None
    for_s: float | None = None
    by_rank: bool = False  # one of several processes: `recording` has RANK_MARK in place of the rank

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Settings:
        """From JSON."""
        return cls(**json.loads(text))

    def of_this_rank(self) -> Settings:
        """The same with the file of this process, if it is one of several."""
        if not self.by_rank:
            return self
        return replace(self, recording=self.recording.replace(RANK_MARK, os.environ.get("RANK", "0")))

    @property
    def counts_steps(self) -> bool:
        """Whether recording depends on the number of a step."""
        return self.last_step is not None or self.schedule is not None


def numbered(path: str, cycle: int) -> str:
    """The file of a cycle of a schedule.

    >>> numbered("run.mtp", 0), numbered("run.mtp", 2), numbered("run.pt.trace.json", 1)
    ('run.mtp', 'run.3.mtp', 'run.2.pt.trace.json')
    """
    if cycle == 0:
        return path
    folder, slash, base = path.rpartition("/")
    start, dot, rest = base.partition(".")
    return f"{folder}{slash}{start}.{cycle + 1}{dot}{rest}"
