"""Pauses of Python's garbage collector while a recording wants them."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.observer import HOOK
from ..trace import Kind, ThreadInfo, TraceBuilder
from ..trace.kineto_words import GC_NAME

clock = HOOK["clock"]
PAUSE_FIELDS = 3  # start, end, thread by the operating system's id



class PauseLog:
    """Notes start and end of each collection, on whichever thread it runs.

    It runs in the middle of anything, so this only appends to a list of its own. Collections do not nest.
    """

    def __init__(self) -> None:
        self.pauses: list[int] = []
        self._start = 0
        self._hook = self._collecting  # one object, so that `stop` finds it

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
            # One that began before we listened has no start.
            self.pauses.extend((self._start, clock(), threading.get_native_id()))
            self._start = 0

    def __len__(self) -> int:
        return len(self.pauses) // PAUSE_FIELDS

    def since(self, begin: int) -> np.ndarray:
        """A row per pause from this one on."""
        return np.array(self.pauses[begin * PAUSE_FIELDS:], np.int64).reshape(-1, PAUSE_FIELDS)


def add_pauses(build: TraceBuilder, stretches: Sequence[np.ndarray], steps_ns: np.ndarray) -> None:
    """Add pauses as events."""
    pauses = np.concatenate(stretches) if stretches else np.zeros((0, PAUSE_FIELDS), np.int64)
    if not len(pauses):
        return
    known = {(info.pid, info.tid): info for info in build.threads}
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    numbers, position = np.unique(pauses[:, 2], return_inverse=True)
    threads = []
    for tid in numbers.tolist():
        info = known.get((os.getpid(), tid)) or ThreadInfo(os.getpid(), tid, names.get(tid, ""))
        threads.append(build.thread(info))
    start = pauses[:, 0]
    build.add_columns({
        "name": np.full(len(pauses), build.name(GC_NAME), np.int32),
        "kind": np.full(len(pauses), Kind.GC, np.uint8),
        "start_ns": start, "end_ns": pauses[:, 1],
        "thread": np.array(threads, np.int32)[position.reshape(-1)],
        "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
    })
