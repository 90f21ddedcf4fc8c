"""`Trace`: columns of events and memory changes with their tables, whoever filled them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from .columns import (
    COLUMNS,
    FAILURE_COLUMNS,
    MEMORY_COLUMNS,
    MODULE_CALL_COLUMNS,
    MODULE_COLUMNS,
    MOVE_COLUMNS,
    ROLE_COLUMNS,
    USE_COLUMNS,
    Column,
    Kind,
)
from .nesting import enclosing_rows, parents


class DeviceKind(IntEnum):
    """Device types, numbered as PyTorch does."""

    CPU = 0
    CUDA = 1
    META = 14
    NPU = 20  # PyTorch's PrivateUse1, which is how Ascend devices plug in


@dataclass(frozen=True)
class ThreadInfo:
    """Where events happened."""

    pid: int
    tid: int  # the operating system's thread id
    name: str = ""
    process_name: str = "python"


@dataclass(frozen=True)
class TensorInput:
    """A tensor argument: `shape` and `strides` in elements, `dtype` by PyTorch's Python name ("float32")."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]


class Arguments(tuple[Any, ...]):
    """An argument tuple with values that were given by name besides."""

    named: dict[str, Any]

    def __new__(cls, values: Iterable[Any], named: dict[str, Any]) -> Arguments:
        made = super().__new__(cls, values)
        made.named = named
        return made

    def __getnewargs__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(self), self.named


@dataclass(frozen=True)
class Frame:
    """A Python stack entry."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        # A built-in function or a module has a name and no place.
        return f"{self.file}({self.line}): {self.function}" if self.file or self.line else self.function


def empty_table(columns: Sequence[Column]) -> dict[str, np.ndarray]:
    """A table without rows."""
    return {column.name: np.zeros(0, column.dtype) for column in columns}


@dataclass(frozen=True)
class Trace:
    """A finished recording.

    `events` has one NumPy array per entry of `COLUMNS`, all of one length, sorted by thread and start so that a
    parent comes before its children. Python calls have parents among themselves and so have all other events: with or
    without stacks, an op has the same parent and the same own time. `memory` has one per `MEMORY_COLUMNS`, sorted by
    time. `uses` (`USE_COLUMNS`) and `roles` (`ROLE_COLUMNS`) say which memory ops had as arguments and what it was,
    `moves` (`MOVE_COLUMNS`) which tensors went to other memory.
    `modules` and `module_calls` (`MODULE_COLUMNS`, `MODULE_CALL_COLUMNS`) are called parts of models and their calls.
    `failures` (`FAILURE_COLUMNS`) are allocations for which there was no memory.
    Integers in them point into the tables. `inputs` holds argument tuples: each item a TensorInput, a list of
    them, or a plain value.
    """

    events: dict[str, np.ndarray]
    memory: dict[str, np.ndarray]
    names: list[str]
    threads: list[ThreadInfo]
    inputs: list[tuple[Any, ...]] = field(default_factory=list)
    stacks: list[tuple[Frame, ...]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    start_ns: int = 0  # host clock when recording began
    end_ns: int = 0
    epoch_ns: int = 0  # add to the host clock to get nanoseconds since 1970
    dropped: int = 0  # events beyond `max_events`
    first_id: int = 1  # of the events; recordings of one process share no ids
    held: Any = None  # `Holdings` of modules and optimizers; None if nobody noted them
    uses: dict[str, np.ndarray] = field(default_factory=lambda: empty_table(USE_COLUMNS))
    moves: dict[str, np.ndarray] = field(default_factory=lambda: empty_table(MOVE_COLUMNS))
    roles: dict[str, np.ndarray] = field(default_factory=lambda: empty_table(ROLE_COLUMNS))
    failures: dict[str, np.ndarray] = field(default_factory=lambda: empty_table(FAILURE_COLUMNS))
    modules: dict[str, np.ndarray] = field(default_factory=lambda: empty_table(MODULE_COLUMNS))
    module_calls: dict[str, np.ndarray] = field(default_factory=lambda: empty_table(MODULE_CALL_COLUMNS))

    def __len__(self) -> int:
        return len(self.events["start_ns"])

    @property
    def duration_ns(self) -> np.ndarray:
        """End minus start, per event."""
        return self.events["end_ns"] - self.events["start_ns"]

    def self_ns(self) -> np.ndarray:
        """Own time per event: its duration without its children's."""
        own = self.duration_ns
        parent = self.events["parent"]
        inside = parent >= 0
        return own - np.bincount(parent[inside], own[inside], minlength=len(own)).astype(np.int64)[: len(own)]

    def check(self) -> Trace:
        """Raise AssertionError if an invariant does not hold; return the trace, so that tests can chain it."""
        events = self.events
        assert set(events) == {c.name for c in COLUMNS}, "columns"
        assert len({len(v) for v in events.values()}) == 1, "columns differ in length"
        assert (events["end_ns"] >= events["start_ns"]).all(), "an event ends before it starts"
        parent = events["parent"]
        rows = np.flatnonzero(parent >= 0)
        above = parent[rows]
        assert (above < rows).all(), "a parent comes after its child"
        assert (events["thread"][above] == events["thread"][rows]).all(), "a parent is on another thread"
        assert (events["start_ns"][above] <= events["start_ns"][rows]).all(), "a child starts before its parent"
        assert (events["end_ns"][above] >= events["end_ns"][rows]).all(), "a child ends after its parent"
        assert (self.self_ns() >= 0).all(), "negative self time"
        for column, table in (("name", self.names), ("overload", self.names), ("thread", self.threads),
                              ("inputs", self.inputs), ("stack", self.stacks), ("module", self.names)):
            assert len(events[column]) == 0 or events[column].max() < len(table), f"{column} points outside its table"
        return self


class TraceBuilder:
    """Collects events from any source, in any order, and makes a Trace of them.

    >>> from mindtorch_v2.profiler.trace import Kind, ThreadInfo, TraceBuilder
    >>> build = TraceBuilder()
    >>> main = build.thread(ThreadInfo(pid=1, tid=1))
    >>> build.add(name="outer", kind=Kind.SCOPE, start_ns=0, end_ns=100, thread=main)
    >>> build.add(name="aten::add", kind=Kind.OP, start_ns=10, end_ns=30, thread=main)
    >>> build.finish().self_ns().tolist()
    [80, 20]
    """

    def __init__(self) -> None:
        self.names: list[str] = [""]
        self._name_ids: dict[str, int] = {"": 0}
        self.threads: list[ThreadInfo] = []
        self.inputs: list[tuple[Any, ...]] = []
        self.stacks: list[tuple[Frame, ...]] = []
        self._chunks: list[dict[str, np.ndarray]] = []
        self._memory_chunks: list[dict[str, np.ndarray]] = []
        self._uses: list[tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]] = []
        self._moves: list[dict[str, np.ndarray]] = []
        self._roles: list[dict[str, np.ndarray]] = []
        self._failures: list[dict[str, np.ndarray]] = []
        self._rows: list[dict[str, int]] = []
        self._memory_rows: list[dict[str, int]] = []
        self._input_ids: dict[Any, int] = {}
        self._stack_ids: dict[tuple[Frame, ...], int] = {}

    def name(self, text: str) -> int:
        """The index of a string in `names`."""
        found = self._name_ids.get(text)
        if found is None:
            found = self._name_ids[text] = len(self.names)
            self.names.append(text)
        return found

    def thread(self, info: ThreadInfo) -> int:
        """The index of a thread in `threads`."""
        if info not in self.threads:
            self.threads.append(info)
        return self.threads.index(info)

    def input(self, arguments: tuple[Any, ...]) -> int:
        """The index of an argument tuple in `inputs`."""
        key = repr(arguments)
        found = self._input_ids.get(key)
        if found is None:
            found = self._input_ids[key] = len(self.inputs)
            self.inputs.append(arguments)
        return found

    def stack(self, frames: Sequence[Frame]) -> int:
        """The index of a stack (innermost frame first) in `stacks`."""
        key = tuple(frames)
        found = self._stack_ids.get(key)
        if found is None:
            found = self._stack_ids[key] = len(self.stacks)
            self.stacks.append(key)
        return found

    def add(self, *, name: str, kind: Kind, start_ns: int, end_ns: int, thread: int, overload: str = "",
            inputs: tuple[Any, ...] | None = None, stack: Sequence[Frame] | None = None, module: str | None = None,
            **columns: int) -> None:
        """Add one event; tables are filled from plain values. Slow: for tests and small files."""
        row = {
            "name": self.name(name), "overload": self.name(overload), "kind": int(kind), "start_ns": start_ns,
            "end_ns": end_ns, "thread": thread, **columns,
        }
        if inputs is not None:
            row["inputs"] = self.input(inputs)
        if stack is not None:
            row["stack"] = self.stack(stack)
        if module is not None:
            row["module"] = self.name(module)
        self._rows.append(row)

    def add_columns(self, columns: dict[str, np.ndarray]) -> None:
        """Add many events; missing columns get their defaults, `parent` is always computed."""
        self._chunks.append(columns)

    def add_memory(self, **columns: int) -> None:
        """Add one memory change."""
        self._memory_rows.append(columns)

    def add_memory_columns(self, columns: dict[str, np.ndarray]) -> None:
        """Add many memory changes."""
        self._memory_chunks.append(columns)

    def add_use_columns(self, thread: np.ndarray, time_ns: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        """Add uses of memory, each by the op that starts next on its thread."""
        self._uses.append((thread, time_ns, columns))

    def add_move_columns(self, columns: dict[str, np.ndarray]) -> None:
        """Add tensors that went to other memory."""
        self._moves.append(columns)

    def add_role_columns(self, columns: dict[str, np.ndarray]) -> None:
        """Add roles of memory."""
        self._roles.append(columns)

    def add_failure_columns(self, columns: dict[str, np.ndarray]) -> None:
        """Add allocations that failed."""
        self._failures.append(columns)

    def finish(self, **facts: Any) -> Trace:
        """The trace; `facts` are its remaining fields (metadata, start_ns, …)."""
        events = _assemble(COLUMNS, self._chunks, self._rows)
        order = np.lexsort((-events["end_ns"], events["start_ns"], events["thread"]))
        events = {key: value[order] for key, value in events.items()}
        others, calls = split_python(events)
        events["parent"] = np.full(len(order), -1, np.int32)
        for rows in (others, calls):
            events["parent"][rows] = _above(events, rows)
        memory = _assemble(MEMORY_COLUMNS, self._memory_chunks, self._memory_rows)
        by_time = np.argsort(memory["time_ns"], kind="stable")
        memory = {key: value[by_time] for key, value in memory.items()}
        memory["row"] = rows_around(events, memory["thread"], memory["time_ns"])
        uses = _assemble(USE_COLUMNS, [
            {**columns, "row": _next_rows(events, others, thread, time)} for thread, time, columns in self._uses], [])
        kept = uses["row"] >= 0
        uses = {key: value[kept] for key, value in uses.items()}
        further: dict[str, Any] = {
            "uses": uses, "moves": _assemble(MOVE_COLUMNS, self._moves, []),
            "roles": _assemble(ROLE_COLUMNS, self._roles, []),
            "failures": _assemble(FAILURE_COLUMNS, self._failures, [])}
        for table in (events, memory, *further.values()):
            for column in table.values():
                column.flags.writeable = False
        return Trace(events, memory, self.names, self.threads, self.inputs, self.stacks, **further, **facts)


def rows_around(events: dict[str, np.ndarray], thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
    """The innermost event around each instant, Python calls apart, or -1."""
    others = split_python(events)[0]
    return np.append(others, -1)[enclosing_rows(_part(events, others), thread, time_ns)].astype(np.int32)


def split_python(events: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The rows that are no Python calls, and those that are."""
    python = (events["kind"] == Kind.PYTHON) | (events["kind"] == Kind.MODULE)
    return np.flatnonzero(~python), np.flatnonzero(python)


def _next_rows(events: dict[str, np.ndarray], rows: np.ndarray, thread: np.ndarray, time_ns: np.ndarray) -> np.ndarray:
    """Among some rows, the first one that starts on this thread from this time on, or -1."""
    result = np.full(len(time_ns), -1, np.int32)
    for number in np.unique(thread).tolist():
        candidates = rows[events["thread"][rows] == number]
        wanted = np.flatnonzero(thread == number)
        found = np.searchsorted(events["start_ns"][candidates], time_ns[wanted])
        result[wanted] = np.append(candidates, -1)[found]
    return result


def _above(events: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
    """The parents of some rows among these rows."""
    found = parents(events["thread"][rows], events["start_ns"][rows], events["end_ns"][rows])
    return np.append(rows, -1)[found].astype(np.int32)


def _part(events: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Some rows with their times and parents, which must be among them, as a table of its own."""
    part = {key: events[key][rows] for key in ("thread", "start_ns", "end_ns")}
    above = events["parent"][rows]
    part["parent"] = np.where(above >= 0, np.searchsorted(rows, above), -1).astype(np.int32)
    return part


def _assemble(columns: Sequence[Any], chunks: list[dict[str, np.ndarray]],
              rows: list[dict[str, int]]) -> dict[str, np.ndarray]:
    if rows:
        chunks = [*chunks, {c.name: np.array([r.get(c.name, c.default) for r in rows]) for c in columns}]
    result = {}
    for column in columns:
        parts = []
        for chunk in chunks:
            if column.name in chunk:
                parts.append(np.asarray(chunk[column.name], column.dtype))
            else:
                length = len(next(iter(chunk.values())))
                parts.append(np.full(length, column.default, column.dtype))
        result[column.name] = np.concatenate(parts) if parts else np.zeros(0, column.dtype)
    return result
