"""Training loops written down by hand: steps of a given length and what happens in them, so that shares are exact."""

from __future__ import annotations

from typing import Any

from mtprof.analysis import Analysis
from mtprof.builder import TraceBuilder
from mtprof.recording import Recording
from mtprof.schema import Kind
from mtprof.trace import Frame, ThreadInfo

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
ADAM = "Optimizer.step#Adam.step"
MIB = 1 << 20


class Loop:
    """Steps one after the other; times in microseconds, from the start of the step that was begun last."""

    def __init__(self) -> None:
        self.build = TraceBuilder()
        self.thread = self.build.thread(ThreadInfo(1, 1, "main"))
        self.at, self.steps, self.memory, self._blocks = 0, 0, 0, 0

    def step(self, length: float) -> None:
        """End the last step and begin one."""
        self.start, self.at = self.at, self.at + int(length * 1000)
        self.build.add(name=f"ProfilerStep#{self.steps}", kind=Kind.STEP, start_ns=self.start, end_ns=self.at,
                       thread=self.thread)
        self.steps += 1

    def event(self, name: str, kind: Kind, start: float, end: float, line: int = 0, **more: Any) -> None:
        """Something that ran, at a line of `train.py` if one is given."""
        if line:
            more["stack"] = [Frame("train.py", line, "train")]
        self.build.add(name=name, kind=kind, start_ns=self.start + int(start * 1000),
                       end_ns=self.start + int(end * 1000), thread=self.thread, **more)

    def allocate(self, size: int, time: float) -> int:
        """Memory taken; the block's address, for `release`."""
        self._blocks += 1
        self._change(size, time, self._blocks)
        return self._blocks

    def release(self, block: int, size: int, time: float) -> None:
        """Memory given back."""
        self._change(-size, time, block)

    def _change(self, size: int, time: float, address: int) -> None:
        self.memory += size
        self.build.add_row("memory", time_ns=self.start + int(time * 1000), thread=self.thread, size_bytes=size,
                           address=address, total_bytes=self.memory, device=0, device_index=-1)

    def analysis(self) -> Analysis:
        """What it comes to."""
        return Analysis(Recording(self.build.finish(start_ns=0, end_ns=self.at)))
