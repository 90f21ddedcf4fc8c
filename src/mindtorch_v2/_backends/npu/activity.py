"""Records what the NPU did during a profile: calls of the runtime, kernels, copies, fills and memory, as columns.

Calls of the runtime are timed on the host and numbered. Device work comes from a collector: the simulator's log of its
work, the records of CANN's tools library (msPTI), or pairs of events around each kernel. A collector links its work to
the numbers of the calls; device times are converted to the host's clock (`clocks.py`).

Several profilers may record at the same time: they share one log, and each takes what came after its `mark`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from . import collectors
from .clocks import Comparison, compare
from .errors import AclError
from .library import WATCH, library
from .memory import ALLOCATORS, OUT_OF_MEMORY, allocator
from .runtime import PROCESS, THREAD, bind


@dataclass
class Taken:
    """The result for one profiler: columns, ready for a trace."""

    calls: list[tuple[str, int, int, int, int]]  # name, start, end, thread, correlation
    work: collectors.Work
    comparisons: dict[int, list[Comparison]]
    memory: list[tuple[int, int, int, int, int, int, int]]  # time, thread, address, bytes, total, reserved, device
    failures: list[tuple[int, int, int, int, int, int]]  # time, thread, bytes, total, reserved, device
    source: str
    simulated: bool
    problem: str = ""


@contextmanager
def unnoticed() -> Iterator[dict[int, AclError]]:
    """A block whose calls are not part of a recording. Errors that the program has not seen yet stay pending in it; the
    block gives them.
    """
    watch, WATCH[0] = WATCH[0], None
    untold, PROCESS.unreported = PROCESS.unreported, {}
    try:
        yield untold
    finally:
        PROCESS.unreported = untold
        WATCH[0] = watch


class Log:
    """The log of the process while at least one profiler needs it."""

    def __init__(self) -> None:
        self.users = 0
        self.lock = threading.RLock()
        self.calls: list[tuple[str, int, int, int, int]] = []
        self.memory: list[tuple[int, int, int, int, int, int, int]] = []
        self.failures: list[tuple[int, int, int, int, int, int]] = []
        self.comparisons: dict[int, list[Comparison]] = {}
        self.collector: Any = None
        self.work: list[collectors.Work] = []
        self.watching_memory = 0
        self.problem = ""

    # -- what runs while a program runs --------------------------------------------------------------------------------

    def call(self, name: str, function: Any, arguments: tuple[Any, ...]) -> int:
        """Make a call of the runtime and record it."""
        number = collectors.next_number()
        collector = self.collector
        before = collector.before(name, number, arguments) if collector is not None else None
        start = perf_counter_ns()
        code = function(*arguments)
        end = perf_counter_ns()
        if collector is not None:
            collector.after(name, number, arguments, before, code)
        self.calls.append((name, start, end, threading.get_ident(), number))
        return code

    def changed(self, address: int, size: int, allocated: int, reserved: int, index: int) -> None:
        """Record that memory was allocated or released."""
        self.memory.append((perf_counter_ns(), threading.get_ident(), address, size, allocated, reserved, index))

    def failed(self, size: int, index: int, allocated: int, reserved: int) -> None:
        """Record that an allocation failed."""
        self.failures.append((perf_counter_ns(), threading.get_ident(), size, allocated, reserved, index))

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self, memory: bool = False) -> tuple[int, ...]:
        """Watch, for one more profiler; returns the position in the log."""
        with self.lock:
            if not self.users:
                self.calls, self.memory, self.failures, self.work = [], [], [], []
                self.comparisons, self.problem = {}, ""
                collector = collectors.choose()
                self._settle()  # earlier work is not part of the recording
                collector.start()
                self.collector = collector
                WATCH[0] = self.call
            self.users += 1
            if memory:
                self.watching_memory += 1
                OUT_OF_MEMORY[0] = self.failed
                for index in self._devices():
                    allocator(index).watch = self.changed
            return (len(self.calls), len(self.memory), len(self.failures), collectors.last_number())

    def _devices(self) -> list[int]:
        """The devices to watch: those in use, and the one that would be first."""
        return sorted({*PROCESS.used, THREAD.current}) if PROCESS.initialized else [THREAD.current]

    def _settle(self) -> None:
        """Wait for queued work, and compare clocks. The profiler must not raise errors of the program's work: the
        program gets them when it waits itself, and the recording continues with what there is.
        """
        before = THREAD.bound
        with unnoticed() as untold:
            for index in self._devices():
                try:
                    if index in PROCESS.used:
                        bind(index).call("aclrtSynchronizeDevice")
                except AclError as error:
                    self.problem = self.problem or str(error)
                    untold.setdefault(index, error)
                try:
                    self.comparisons.setdefault(index, []).append(compare(index))
                except AclError as error:  # the device is lost, as the program will see
                    self.problem = self.problem or str(error)
            if before >= 0:
                bind(before)

    def stop(self, mark: tuple[int, ...], memory: bool = False) -> Taken:
        """Take what came since a mark; with the last profiler, stop watching."""
        with self.lock:
            self.users -= 1
            last = self.users == 0
            if memory:
                self.watching_memory -= 1
                if not self.watching_memory:
                    OUT_OF_MEMORY[0] = None
                    for each in ALLOCATORS.values():
                        each.watch = None
            if last:
                WATCH[0] = None
            try:
                self._settle()
            except RuntimeError as error:  # the runtime was shut down; the recording until then survives
                self.problem = str(error)
            with unnoticed():
                self.work.append(self.collector.collect(self.comparisons))
            work = collectors.joined(self.work)
            self.work = [work]
            calls, changes, failures, number = mark
            taken = Taken(self.calls[calls:], work.after(number), dict(self.comparisons), self.memory[changes:],
                          self.failures[failures:], self.collector.name, library().simulated, self.problem)
            if last:
                self.collector.stop()
                self.collector = None
                self.calls, self.memory, self.failures, self.work = [], [], [], []
            return taken


LOG = Log()


def _forget_in_child() -> None:
    """A forked child does not watch what its parent watches."""
    WATCH[0] = OUT_OF_MEMORY[0] = None
    LOG.__init__()  # type: ignore[misc]
    for each in ALLOCATORS.values():
        each.watch = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
