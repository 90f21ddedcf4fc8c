"""`profile(save_to=path)`: writes the recording to a file while the program runs, so that memory stays limited.

Every half second a thread makes a small trace of the new events and adds it to the file. While the recording runs, the
file lacks only its end, so its contents survive the end of the process, however that comes. Rows are written as they
come. They are put in order, and facts that follow from the whole are computed, when the file is read. A call is written
when it has ended.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mtprof.schema import POOLS, TABLES
from mtprof.store import arrow
from mtprof.trace import Trace

from .recorder import Recorder, assemble
from .recorder.collectives import rank_metadata
from .sources.modules import ModuleName, Modules, names_of
from .sources.python_calls import OUR_THREADS

INTERVAL_S = 0.5


class ChunkFile:
    """A trace file to which small traces are added; names, threads and inputs get one number each over all of them."""

    def __init__(self, path: str | os.PathLike[str], facts: Mapping[str, Any]) -> None:
        arrow.arrow()  # raises an error that says how to install it, before a file is made
        self.path = os.fspath(path)
        self._numbers: dict[str, dict[Any, int]] = {name: {} for name in POOLS}
        self._counts = dict.fromkeys(TABLES, 0)
        self._modules: dict[int, int] = {}  # their rows, by path
        with self._naming():
            self._file = open(self.path, "wb")  # noqa: SIM115  (closed by `close`)
            _OPEN.add(weakref.ref(self, _OPEN.discard))
            self._writer = arrow.Writer(self._file)
            self.state(facts)
            self._file.flush()

    @contextlib.contextmanager
    def _naming(self) -> Iterator[None]:
        """Makes errors name the file."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, f"cannot write {self.path}: {error.strerror or error}") from error

    def state(self, facts: Mapping[str, Any]) -> None:
        """State facts about a running recording."""
        self._writer.about({**facts, "finished": False})

    def add(self, trace: Trace) -> None:
        """Add a trace's rows."""
        places = {name: self._places(name, getattr(trace, name)) for name in POOLS}
        for name, count in self._counts.items():
            rows = len(trace.optional(name)[TABLES[name].columns[0].name])
            places[name] = np.append(np.arange(count, count + rows), -1)
        new = np.zeros(0, bool)
        if trace.has("modules"):  # each trace states them again
            path = places["names"][trace.modules["path"]].tolist()
            new = np.array([one not in self._modules for one in path], bool)
            places["modules"] = np.array([*(self._modules.setdefault(one, len(self._modules)) for one in path), -1])
        for name, table in trace.tables.items():
            columns = {}
            for column in TABLES[name]:
                value = table[column.name]
                if column.refers is not None:
                    value = places[column.refers][value].astype(value.dtype)
                columns[column.name] = value[new] if name == "modules" else value
            self._counts[name] += len(next(iter(columns.values())))
            with self._naming():
                self._writer.table(name, columns)
        with self._naming():
            self._file.flush()

    def _places(self, pool: str, values: Any) -> np.ndarray:
        """The index of a trace's entries in the file, which gets the new ones; the last is that of -1."""
        known, new, result = self._numbers[pool], [], []
        for value in values:
            key = repr(value) if pool == "inputs" else value
            number = known.get(key)
            if number is None:
                number = known[key] = len(known)
                new.append(value)
            result.append(number)
        if new:
            with self._naming():
                self._writer.pool(pool, new)
        return np.array([*result, -1], np.int64)

    def close(self, facts: Mapping[str, Any] | None = None) -> None:
        """Write the end, with what is now known about the recording."""
        with self._naming():
            try:
                if facts is not None:
                    self.state(facts)
                self._writer.close()
            finally:
                self._file.close()


_OPEN: set[weakref.ref[ChunkFile]] = set()


def _let_go_in_child() -> None:
    """A forked child has its parent's open files and buffers: what it writes, also at its end, goes nowhere."""
    for reference in list(_OPEN):
        found = reference()
        if found is not None and not found._file.closed:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, found._file.fileno(), inheritable=False)
            os.close(nowhere)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


class Saver:
    """Moves what an active recorder has into a file, again and again."""

    def __init__(self, recorder: Recorder, path: str | os.PathLike[str], metadata: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self.metadata = dict(metadata)
        self.file = ChunkFile(path, {"metadata": self.metadata})
        self.error: BaseException | None = None
        self.wanted = False
        self._begun = False  # whether the file states the start
        self._module_names: dict[int, ModuleName] = {}
        self._thread_number = -1
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="profiler saving", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        self._thread_number = threading.get_native_id()
        OUR_THREADS.add(self._thread_number)
        while not self._over.wait(INTERVAL_S):
            try:
                with self._lock:
                    self.save_now()
            except BaseException as error:  # raised when the recording stops; until then events stay in memory
                self.error = error
                return

    def save_now(self) -> None:
        """Write the new events. While other recorders are active, they need these too, so the events stay."""
        recorder = self.recorder
        with Recorder.lock:
            part = recorder.taken_out(self._names)
        if part is None:
            return
        known = {**self.metadata, **rank_metadata()}
        if known != self.metadata or not self._begun:  # at once, because a killed process states nothing at the end
            self.metadata, self._begun = known, True
            self.file.state({"metadata": known, "start_ns": part.start_ns, "epoch_ns": part.epoch_ns})
        self.file.add(assemble(part, metadata={}, with_flops=recorder.options.flops, whole=False))
        recorder.goes_on_after(part)

    def _names(self, modules: Modules) -> dict[int, ModuleName]:
        """The names of all modules that were called so far; looked up again when there are more of them."""
        if len(modules.called) != len(self._module_names):
            self._module_names = names_of(list(modules.called.values()), self.recorder.labels)
        return self._module_names

    def finish(self, rest: Trace | None) -> None:
        """Write the rest and the end of the file."""
        self.stop()
        try:
            if rest is not None and self.error is None:
                self.file.add(rest)
        finally:
            self.file.close(None if rest is None else {**arrow.facts_of(rest)})
            OUR_THREADS.discard(self._thread_number)
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Stop writing."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()


def numbered(path: str | os.PathLike[str], number: int) -> str:
    """The file of the recording with this number: the first is the path itself, the next of `run.mtp` is
    `run.2.mtp`."""
    stem, suffix = os.path.splitext(os.fspath(path))
    return os.fspath(path) if number == 1 else f"{stem}.{number}{suffix}"


def check(**others: Any) -> None:
    """Raise an error for what cannot be written during recording."""
    for name, value in others.items():
        if value is not None:
            raise NotImplementedError(f"save_to together with {name}: use prof.save(path) after the recording")
