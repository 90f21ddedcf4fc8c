"""`Trace`: a finished recording, as tables of columns and pools of values that they refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .errors import MissingTable
from .schema import PYTHON_KINDS, TABLES, Table

Columns = Mapping[str, np.ndarray]


class ThreadInfo(NamedTuple):
    """Where events happened."""

    pid: int
    tid: int  # the operating system's thread id
    name: str = ""
    process_name: str = "python"


class Frame(NamedTuple):
    """A Python stack entry."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        # A built-in function or a module has a name and no place.
        return f"{self.file}({self.line}): {self.function}" if self.file or self.line else self.function


@dataclass(frozen=True)
class TensorInput:
    """A tensor argument: `shape` and `strides` in elements, `dtype` by PyTorch's Python name ("float32")."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]


class Arguments(tuple[Any, ...]):
    """An argument tuple with keyword arguments."""

    named: dict[str, Any]

    def __new__(cls, values: Iterable[Any], named: dict[str, Any]) -> Arguments:
        """The positional values, and the named ones."""
        result = super().__new__(cls, values)
        result.named = named
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return Arguments, (tuple(self), self.named)


def empty_table(table: Table) -> Columns:
    """A table without rows."""
    return {column.name: np.zeros(0, column.dtype) for column in table}


def count_rows(columns: Columns) -> int:
    """The number of rows of a table."""
    return len(columns[next(iter(columns))])


@dataclass(frozen=True)
class Trace:
    """A finished recording.

    `tables` maps names of `schema.TABLES` to columns, for the tables that were recorded. `trace.memory` is
    `trace.tables["memory"]`, or raises `MissingTable`; `trace.optional("memory")` is an empty table in that case.
    `events` is always there, sorted by thread and start so that a parent comes before its children. Python calls have
    parents among themselves, and so have all other events: with or without stacks, an op has the same parent and the
    same self time. The pools hold the values of the numbers in columns.
    """

    tables: Mapping[str, Columns]
    names: Sequence[str] = ("",)
    threads: Sequence[ThreadInfo] = ()
    inputs: Sequence[tuple[Any, ...]] = ()
    frames: Sequence[Frame] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    start_ns: int = 0
    end_ns: int = 0
    epoch_ns: int = 0
    dropped: int = 0
    first_id: int = 1

    @property
    def events(self) -> Columns:
        """The columns of the table of events."""
        return self.tables["events"]

    def __getattr__(self, name: str) -> Columns:
        """A table by its name."""
        if name not in TABLES:
            raise AttributeError(f"a Trace has no attribute {name!r}")
        found = self.__dict__.get("tables", {}).get(name)
        if found is None:
            table = TABLES[name]
            kept = "" if table.in_kineto else ", and keep it with save(): " + (
                f"Chrome traces have it only if they have {table.told_by}" if table.told_by else
                "Chrome traces do not hold it")
            raise MissingTable(f"this trace has no table {name!r} ({table.meaning}). Record it with "
                               f"{table.needs}{kept}")
        return found

    def has(self, name: str) -> bool:
        """Whether a table was recorded."""
        return name in self.tables

    def optional(self, name: str) -> Columns:
        """A table; an empty one if it was not recorded."""
        found = self.tables.get(name)
        return empty_table(TABLES[name]) if found is None else found

    def __len__(self) -> int:
        return len(self.events["start_ns"])

    def __repr__(self) -> str:
        return (f"<Trace of {len(self):,} events on {len(self.threads)} threads in "
                f"{(self.end_ns - self.start_ns) / 1e9:.3f} s; tables {', '.join(self.tables)}>")

    def _repr_html_(self) -> str:
        from .notebook import reprs

        return reprs.trace(self)

    def with_tables(self, **tables: Columns) -> Trace:
        """The trace with these tables added or replaced."""
        return replace(self, tables={**self.tables, **{name: frozen(table) for name, table in tables.items()}})

    def with_columns(self, table: str, **columns: np.ndarray) -> Trace:
        """The trace with these columns of a table added or replaced."""
        return self.with_tables(**{table: {**self.tables[table], **columns}})

    @property
    def duration_ns(self) -> np.ndarray:
        """End minus start, per event."""
        return self.events["end_ns"] - self.events["start_ns"]

    def self_ns(self) -> np.ndarray:
        """Self time per event: its duration without its children's."""
        own = self.duration_ns
        parent = self.events["parent"]
        inside = parent >= 0
        return own - np.bincount(parent[inside], own[inside], minlength=len(own)).astype(np.int64)[: len(own)]

    def stack(self, number: int) -> tuple[Frame, ...]:
        """The frames of a stack, innermost first; none for -1."""
        stacks = self.optional("stacks")
        frame, caller = stacks["frame"], stacks["caller"]
        found = []
        while number >= 0:
            found.append(self.frames[frame.item(number)])
            number = caller.item(number)
        return tuple(found)


def frozen(columns: Columns) -> Columns:
    """Columns that are read-only."""
    for column in columns.values():
        column.flags.writeable = False
    return columns


def split_python(events: Columns) -> tuple[np.ndarray, np.ndarray]:
    """The rows that are not Python calls, and those that are."""
    python = np.isin(events["kind"], PYTHON_KINDS)
    return np.flatnonzero(~python), np.flatnonzero(python)
