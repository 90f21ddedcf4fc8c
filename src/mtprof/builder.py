"""`TraceBuilder`: makes a Trace from rows of any source, in any order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .schema import FACTS, TABLES, Column, Kind, Table
from .tables.nesting import all_parents, next_rows, rows_around
from .trace import Columns, Frame, ThreadInfo, Trace, frozen

_PLACING = ("thread", "time_ns")  # the place of a row among events, whether or not its table keeps it


class TraceBuilder:
    """Collects rows of tables and the values that they refer to.

    >>> from mtprof.builder import TraceBuilder
    >>> from mtprof.schema import Kind
    >>> from mtprof.trace import ThreadInfo
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
        self._thread_ids: dict[ThreadInfo, int] = {}
        self.inputs: list[tuple[Any, ...]] = []
        self._input_ids: dict[Any, int] = {}
        self.frames: list[Frame] = []
        self._frame_ids: dict[Frame, int] = {}
        self._stack_ids: dict[tuple[int, int], int] = {}  # frame and caller
        self._chunks: dict[str, list[Columns]] = {"events": []}
        self._rows: dict[str, list[Mapping[str, int]]] = {}

    def name(self, text: str) -> int:
        """The number of a text in `names`."""
        found = self._name_ids.get(text)
        if found is None:
            found = self._name_ids[text] = len(self.names)
            self.names.append(text)
        return found

    def thread(self, info: ThreadInfo) -> int:
        """The number of a thread in `threads`."""
        found = self._thread_ids.get(info)
        if found is None:
            found = self._thread_ids[info] = len(self.threads)
            self.threads.append(info)
        return found

    def input(self, arguments: tuple[Any, ...]) -> int:
        """The number of an argument tuple in `inputs`."""
        key = repr(arguments)
        found = self._input_ids.get(key)
        if found is None:
            found = self._input_ids[key] = len(self.inputs)
            self.inputs.append(arguments)
        return found

    def stack(self, frames: Sequence[Frame]) -> int:
        """The number of a stack (innermost frame first) in `stacks`."""
        found = -1
        for frame in reversed(frames):
            found = self.call(frame, found)
        return found

    def call(self, frame: Frame, caller: int) -> int:
        """The number of the stack that has this frame on top of another stack, or of no stack (-1)."""
        place = self._frame_ids.get(frame)
        if place is None:
            place = self._frame_ids[frame] = len(self.frames)
            self.frames.append(frame)
        return self._stack_ids.setdefault((place, caller), len(self._stack_ids))

    def add(self, *, name: str, kind: Kind, start_ns: int, end_ns: int, thread: int, overload: str = "",
            inputs: tuple[Any, ...] | None = None, stack: Sequence[Frame] | None = None, module: str | None = None,
            **columns: int) -> None:
        """Add one event; pools are filled from plain values. Slow: for tests and small files."""
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
        self.add_row("events", **row)

    def add_row(self, table: str, /, **row: int) -> None:
        """Add one row to a table; missing columns get their defaults."""
        _check_known(table, row)
        self._chunks.setdefault(table, [])
        self._rows.setdefault(table, []).append(row)

    def add_columns(self, table: str, columns: Columns) -> None:
        """Add many rows to a table. Missing columns get their defaults; `parent` of events is always computed.

        If a table is placed among events, its rows have `thread` and `time_ns`, whether or not the table keeps them.
        Other references to rows are numbers in the order of adding; they stay right when rows are sorted. An empty set
        of columns means that the table was recorded and nothing happened.
        """
        _check_known(table, columns)
        self._chunks.setdefault(table, [])
        if columns:
            self._chunks[table].append(columns)

    def count(self, table: str) -> int:
        """The number of rows that `add_columns` has been given so far, which is the number of its next row."""
        return sum(len(next(iter(chunk.values()))) for chunk in self._chunks.get(table, ()))

    def finish(self, **facts: Any) -> Trace:
        """The trace; `facts` are its remaining fields (metadata, start_ns, …)."""
        tables: dict[str, dict[str, np.ndarray]] = {}
        places: dict[str, np.ndarray] = {}  # where rows went, for tables that were not in order; -1 leads to -1
        for name in ("events", *TABLES):  # a table comes after those that it refers to
            if name not in self._chunks or name in tables:
                continue
            table = TABLES[name]
            columns = self._placed(table, tables["events"]) if table.placed else self._table(name)
            for column in table:
                if column.refers in places and not self._is_found(table, column):
                    columns[column.name] = places[column.refers][columns[column.name]]
            order = order_of(table, columns)
            if order is not None:
                columns = {key: value[order] for key, value in columns.items()}
                place = places[name] = np.full(len(order) + 1, -1, np.int32)
                place[order] = np.arange(len(order), dtype=np.int32)
                if table.tree is not None and name != "events":
                    columns[table.tree.name] = place[columns[table.tree.name]]
            if name == "events":
                columns["parent"] = all_parents(columns)
            tables[name] = columns
        if self._stack_ids:
            frame, caller = np.array(list(self._stack_ids), np.int32).reshape(-1, 2).T
            tables["stacks"] = {"frame": frame.copy(), "caller": caller.copy()}
        return Trace({name: frozen(tables[name]) for name in TABLES if name in tables}, self.names, self.threads,
                     self.inputs, self.frames, **facts)

    def _is_found(self, table: Table, column: Column) -> bool:
        """Whether a reference to events follows from times; otherwise whoever added the row gave it."""
        return column.refers == "events" and table.placed is not None and self._has_places(table)

    def _has_places(self, table: Table) -> bool:
        """Whether rows state their thread and time. Rows from a file already have their places."""
        return "thread" in table.by_name or all("thread" in chunk for chunk in self._chunks[table.name])

    def _placed(self, table: Table, events: Columns) -> dict[str, np.ndarray]:
        """A table with the events that its rows belong to."""
        if not self._has_places(table):
            return self._table(table.name)
        rows = self._table(table.name, _PLACING)
        rows["row"] = (rows_around if table.placed == "around" else next_rows)(events, rows["thread"], rows["time_ns"])
        if table.by_name["row"].owned:
            kept = rows["row"] >= 0
            rows = {key: value[kept] for key, value in rows.items()}
        return {column.name: rows[column.name] for column in table}

    def _table(self, name: str, also: Iterable[str] = ()) -> dict[str, np.ndarray]:
        """A table's chunks as one; `also` are columns that are used only to place its rows."""
        return joined(TABLES[name], [*self._chunks[name], *_as_chunk(self._rows.get(name, []))], also)


def _check_known(table: str, columns: Iterable[str]) -> None:
    """Raise an error for names that the schema does not know; they would be lost silently."""
    if table not in TABLES:
        raise ValueError(f"there is no table {table!r} in the schema of traces; tables are {', '.join(TABLES)}")
    known = TABLES[table].by_name
    for name in columns:
        if name not in known and not (TABLES[table].placed and name in _PLACING):
            raise ValueError(f"table {table!r} has no column {name!r}; its columns are {', '.join(known)}")


def put_in_order(trace: Trace) -> Trace:
    """A trace from rows as they were written: sorted, with parents and the events that rows belong to."""
    build = TraceBuilder()
    build.names, build.threads = list(trace.names), list(trace.threads)
    build.inputs, build.frames = list(trace.inputs), list(trace.frames)
    for name, table in trace.tables.items():
        build.add_columns(name, dict(table))
    return build.finish(metadata=trace.metadata, **{fact: getattr(trace, fact) for fact, _, _ in FACTS})


def _as_chunk(rows: Sequence[Mapping[str, int]]) -> list[Columns]:
    """Single rows as chunks: rows that state the same columns form one."""
    chunks: dict[tuple[str, ...], list[Mapping[str, int]]] = {}
    for row in rows:
        chunks.setdefault(tuple(row), []).append(row)
    return [{key: np.array([row[key] for row in group]) for key in keys} for keys, group in chunks.items()]


def joined(table: Table, chunks: Sequence[Columns], also: Iterable[str] = ()) -> dict[str, np.ndarray]:
    """Chunks of a table as one, with defaults where a chunk does not state a column."""
    result = {}
    wanted = {column.name: (column.dtype, column.default) for column in table}
    wanted |= {name: (np.int64, 0) for name in also if name not in wanted}
    for name, (dtype, default) in wanted.items():
        parts = [np.asarray(chunk[name], dtype) if name in chunk
                 else np.full(len(next(iter(chunk.values()))), default, dtype) for chunk in chunks]
        result[name] = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(0, dtype)
    return result


def ordered(table: Table, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A table's rows in the order that the schema wants."""
    order = order_of(table, columns)
    return columns if order is None else {key: value[order] for key, value in columns.items()}


def order_of(table: Table, columns: Columns) -> np.ndarray | None:
    """The order that the schema wants a table's rows in; None if they have it."""
    keys = [-columns[key[1:]] if key.startswith("-") else columns[key] for key in table.order]
    if not keys or len(keys[0]) < 2 or _is_sorted(keys):
        return None
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


def _is_sorted(keys: Sequence[np.ndarray]) -> bool:
    """Whether rows are already in order, as those of one thread mostly are."""
    undecided = np.ones(len(keys[0]) - 1, bool)
    for key in keys:
        before, after = key[:-1], key[1:]
        if (undecided & (after < before)).any():
            return False
        undecided &= after == before
    return True
