"""Records pauses of Python's garbage collector."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtprof.builder import TraceBuilder
from mtprof.names import GC_NAME
from mtprof.schema import Kind
from mtprof.trace import ThreadInfo

from ..._dispatch.observer import HOOK
from ..options import Options
from .base import Source, Stretch

if TYPE_CHECKING:
    from ..recorder.running import Running

clock = HOOK["clock"]
PAUSE_FIELDS = 6  # start, end, thread by the operating system's id, generation, collected, uncollectable


class Garbage(Source):
    """Records start and end of each collection, on the thread where it runs.

    It can run in the middle of any code, so it only appends to a list of its own. Collections do not nest.
    """

    name = "garbage"
    tables = ("events", "collections")
    cost = "two calls of a function per collection"

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.pauses: list[int] = []
        self._start = 0
        self._hook = self._collecting  # one object, so that `stop` finds it

    def wanted(self, options: Options) -> bool:
        """If collections are requested."""
        return options.collections

    def start(self) -> None:
        """Begin to see collections."""
        gc.callbacks.append(self._hook)

    def stop(self) -> None:
        """Stop."""
        if self._hook in gc.callbacks:  # a program may have cleared the list
            gc.callbacks.remove(self._hook)

    def _collecting(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._start = clock()
        elif self._start:
            # A collection that began before we listened has no start.
            self.pauses.extend((self._start, clock(), threading.get_native_id(), info["generation"],
                                info["collected"], info["uncollectable"]))
            self._start = 0

    def mark(self) -> int:
        """The number of pauses so far."""
        return len(self.pauses) // PAUSE_FIELDS * PAUSE_FIELDS

    def take(self, mark: int, stretch: Stretch) -> np.ndarray:
        """A row per pause that began since the mark and before the end; stopping may collect too. One may outlast the
        end."""
        noted = self.pauses[mark:]
        rows = np.array(noted[:len(noted) // PAUSE_FIELDS * PAUSE_FIELDS], np.int64).reshape(-1, PAUSE_FIELDS)
        rows = rows[(rows[:, 0] >= stretch.start_ns) & (rows[:, 0] < stretch.end_ns)]
        rows[:, 1] = np.minimum(rows[:, 1], stretch.end_ns)
        return rows


def add_pauses(build: TraceBuilder, stretches: Sequence[np.ndarray], steps_ns: np.ndarray) -> None:
    """Add pauses as events, with what they found."""
    if not stretches:
        return
    build.add_columns("collections", {})
    pauses = np.concatenate(stretches)
    if not len(pauses):
        return
    build.add_columns("collections", {
        "row": np.arange(len(pauses), dtype=np.int32) + build.count("events"),
        "generation": pauses[:, 3].astype(np.uint8), "collected": pauses[:, 4], "uncollectable": pauses[:, 5],
    })
    known = {(info.pid, info.tid): info for info in build.threads}
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    numbers, position = np.unique(pauses[:, 2], return_inverse=True)
    threads = []
    for tid in numbers.tolist():
        info = known.get((os.getpid(), tid)) or ThreadInfo(os.getpid(), tid, names.get(tid, ""))
        threads.append(build.thread(info))
    start = pauses[:, 0]
    build.add_columns("events", {
        "name": np.full(len(pauses), build.name(GC_NAME), np.int32),
        "kind": np.full(len(pauses), Kind.GC, np.uint8),
        "start_ns": start, "end_ns": pauses[:, 1],
        "thread": np.array(threads, np.int32)[position.reshape(-1)],
        "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
    })
