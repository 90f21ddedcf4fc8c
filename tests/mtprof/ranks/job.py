"""Recordings of a job written by hand: every time in them is chosen, so answers are exact."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mtprof.builder import TraceBuilder
from mtprof.export import chrome
from mtprof.own_metadata import STEP_STARTS
from mtprof.schema import Kind
from mtprof.store import arrow
from mtprof.trace import ThreadInfo, Trace

EPOCH_NS = 1_790_000_000_000_000_000
MS = 1_000_000


@dataclass
class Rank:
    """A rank that does one thing after the other; times in milliseconds of the true clock, from 0."""

    rank: int
    size: int
    run: str = "run"
    now: float = 0.0
    skew: Any = None            # from the true time to that of the rank's own clock
    offset_ns: int | None = 0   # what the file says of its clock; None: nothing
    error_ns: int = 1000
    epoch_ns: int = EPOCH_NS
    rows: list[tuple[str, Kind, float, float, str | None]] = field(default_factory=list)
    talks: list[tuple[int, int, str, str]] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)

    def do(self, name: str, length: float, kind: Kind = Kind.OP, module: str | None = None) -> Rank:
        """Some work."""
        self.rows.append((name, kind, self.now, self.now + length, module))
        self.now += length
        return self

    def compute(self, length: float, module: str | None = None) -> Rank:
        return self.do("aten::mm", length, module=module)

    def load(self, length: float) -> Rank:
        return self.do("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", length, Kind.SCOPE)

    def idle(self, length: float) -> Rank:
        self.now += length
        return self

    def step(self) -> Rank:
        self.steps.append(self.now)
        return self

    def meet(self, number: int, until: float, operation: str = "allreduce", group: str = "0") -> Rank:
        """An all-reduce that ends at a time."""
        self.talks.append((len(self.rows), number, operation, group))
        return self.do("record_param_comms", until - self.now)

    def trace(self) -> Trace:
        def clock(milliseconds: float) -> int:
            return round((milliseconds if self.skew is None else self.skew(milliseconds)) * MS)

        build = TraceBuilder()
        thread = build.thread(ThreadInfo(100 + self.rank, 100 + self.rank, "MainThread"))
        for name, kind, start, end, module in self.rows:
            build.add_row("events", name=build.name(name), kind=int(kind), start_ns=clock(start), end_ns=clock(end),
                          thread=thread, module=-1 if module is None else build.name(module))
        for row, number, operation, group in self.talks:
            build.add_row("collectives", row=row, operation=build.name(operation), dtype=build.name("Float"),
                          in_elements=10, out_elements=10, group=build.name(group), group_size=self.size,
                          rank=self.rank, number=number)
        metadata: dict[str, Any] = {"distributedInfo": {"backend": "gloo", "rank": self.rank,
                                                        "world_size": self.size}}
        if self.offset_ns is not None:
            metadata["rank_clock"] = {"run": self.run, "reference_rank": 0, "time_ns": 0, "offset_ns": self.offset_ns,
                                      "error_ns": self.error_ns}
        if self.steps:
            metadata["mindtorch_v2"] = {STEP_STARTS: [clock(time) - clock(0) for time in self.steps]}
        return build.finish(metadata=metadata, start_ns=clock(0), end_ns=clock(self.now), epoch_ns=self.epoch_ns)

    def save(self, folder: Path, name: str = "") -> Path:
        path = folder / (name or f"rank{self.rank}.mtp")
        arrow.save(self.trace(), path)
        return path

    def save_chrome(self, folder: Path) -> Path:
        path = folder / f"rank{self.rank}.json"
        trace = self.trace()
        chrome.write(trace, path, metadata={key: json.dumps(trace.metadata[key]) for key in ("distributedInfo",)})
        return path


def job(folder: Path, size: int = 3, steps: int = 4, slow: int = 2, save: str = "save", **options: Any) -> list[Rank]:
    """Ranks that compute 10 ms a step and meet; the slow one takes 4 ms more, in module `net.big`."""
    ranks = [Rank(rank, size, **options) for rank in range(size)]
    for number in range(steps):
        for one in ranks:
            one.load(1).compute(6, "net.small").compute(3 + 4 * (one.rank == slow), "net.big")
        over = max(one.now for one in ranks) + 2
        for one in ranks:
            one.meet(number, over)
            if number < steps - 1:
                one.step()
    for one in ranks:
        getattr(one, save)(folder)
    return ranks
