"""`profile(save_to=path)`: what is recorded goes to a file while the program runs, so that memory stays bounded.

A thread takes what has come every half second, makes a small trace of it and adds that to the file, which lacks only
its end while the recording runs: what was written survives the end of the process, whatever ends it. Rows are written
as they come and put in order when the file is read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from mtprof.schema import POOLS, TABLES
from mtprof.store import arrow
from mtprof.trace import Trace

from .._dispatch.observer import HOOK
from .options import Options
from .recorder import Recorder, assemble
from .sources.buffers import drained
from .sources.memory import MEMORY, MemoryPart
from .sources.ops import Piece

clock = HOOK["clock"]
INTERVAL_S = 0.5
# What needs the whole recording at once: calls and modules are put together at its end.
WHOLE = {"with_stack": "stacks", "with_modules": "modules"}


class ChunkFile:
    """A trace file to which small traces are added; names, threads and inputs get one number each over all of them."""

    def __init__(self, path: str | os.PathLike[str], facts: Mapping[str, Any]) -> None:
        arrow.arrow()  # says how to get it, before a file is made
        self.path = os.fspath(path)
        self._file = open(self.path, "wb")  # noqa: SIM115  (closed by `close`)
        self._writer = arrow.Writer(self._file)
        self._numbers: dict[str, dict[Any, int]] = {name: {} for name in POOLS}
        self._counts = dict.fromkeys(TABLES, 0)
        self._state(facts)
        self._file.flush()

    def _state(self, facts: Mapping[str, Any]) -> None:
        self._writer.about({**facts, "finished": False})

    def add(self, trace: Trace) -> None:
        """Add a trace's rows."""
        places = {name: self._places(name, getattr(trace, name)) for name in POOLS}
        before = dict(self._counts)
        for name, table in trace.tables.items():
            columns = {}
            for column in TABLES[name]:
                value = table[column.name]
                if column.refers in POOLS:
                    value = places[column.refers][value].astype(value.dtype)
                elif column.refers in TABLES:
                    value = np.where(value >= 0, value + before[column.refers], value).astype(value.dtype)
                columns[column.name] = value
            self._counts[name] += len(next(iter(columns.values())))
            self._writer.table(name, columns)
        self._file.flush()

    def _places(self, pool: str, values: Any) -> np.ndarray:
        """Where a trace's entries are in the file, which gets the new ones; the last is that of -1."""
        known, new, result = self._numbers[pool], [], []
        for value in values:
            key = repr(value) if pool == "inputs" else value
            number = known.get(key)
            if number is None:
                number = known[key] = len(known)
                new.append(value)
            result.append(number)
        if new:
            self._writer.pool(pool, new)
        return np.array([*result, -1], np.int64)

    def close(self, facts: Mapping[str, Any] | None = None) -> None:
        """Write the end, with what is known of the recording by now."""
        try:
            if facts is not None:
                self._state(facts)
            self._writer.close()
        finally:
            self._file.close()


class Saver:
    """Takes what an active recorder has, again and again, into a file."""

    def __init__(self, recorder: Recorder, path: str | os.PathLike[str], metadata: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self.metadata = dict(metadata)
        self.file = ChunkFile(path, {"metadata": self.metadata})
        self.error: BaseException | None = None
        self.wanted = False
        self._memory_bytes: int | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="profiler saving", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(INTERVAL_S):
            try:
                with self._lock:
                    self.save_now()
            except BaseException as error:  # told to whoever stops the recording; until then it stays in memory
                self.error = error
                return

    def save_now(self) -> None:
        """Write what has come since the last time. While other recorders are active they need it too, and it stays."""
        recorder = self.recorder
        with Recorder.lock:
            running = Recorder.running
            if running is None or running.users != [recorder] or "ops" not in recorder._marks:
                return
            part = Recorder(recorder.options)
            part.start_ns, part.epoch_ns, part.steps_ns = recorder.start_ns, recorder.epoch_ns, list(recorder.steps_ns)
            marks = recorder._marks
            pieces = [Piece(events, lane.info, lane.ident) for lane in list(running.ops.lanes)
                      if len(events := drained(lane.events, marks["ops"].get(lane, 0)))]
            marks["ops"] = {}
            part.parts["ops"] = [pieces]
            if "memory" in marks:
                mark = marks["memory"]
                changes = MEMORY.drain()
                part.parts["memory"] = [MemoryPart(tuple(column[mark.changes:] for column in changes),
                                                   mark.live_bytes, running.memory.failures[mark.failures:])]
                marks["memory"] = running.memory.mark()
            part.end_ns = clock()
            part.notes_taken = recorder.notes_taken
        self.file.add(assemble(part, metadata={}, with_flops=recorder.options.flops))
        recorder.notes_taken = part.notes_taken

    def finish(self, rest: Trace | None) -> None:
        """Write the rest and the end of the file."""
        self.stop()
        try:
            if rest is not None and self.error is None:
                self.file.add(rest)
        finally:
            self.file.close(None if rest is None else {**arrow.facts_of(rest)})
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Take nothing more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()


def check(options: Options, **others: Any) -> None:
    """Refuse what cannot be written while it is recorded."""
    for name, wish in WHOLE.items():
        if getattr(options, wish):
            raise NotImplementedError(f"save_to together with {name}=True: calls are put together when the recording "
                                      "is over; use prof.save(path) after it")
    for name, value in others.items():
        if value is not None:
            raise NotImplementedError(f"save_to together with {name}: " + (
                "one file holds one recording; use prof.save(path) in on_trace_ready" if name == "schedule"
                else "use prof.save(path) after the recording"))
