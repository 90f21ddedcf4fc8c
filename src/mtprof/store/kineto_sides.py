"""Side tables in a Chrome trace, in both directions, as the schema says.

Rows about an event are in its `args`. A table that refers to nothing is under `mtprof` at the top, with times since
1970.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..builder import TraceBuilder
from ..codes import Code
from ..json_text import text
from ..schema import TABLES, Column, Direction, Table
from ..trace import Trace

SIDES = tuple(table for table in TABLES.values() if table.about)
TOP = "mtprof"
_AT_THE_TOP = tuple(table for table in TABLES.values() if table.in_kineto and table.stands_alone)

_COPY = re.compile(r"Memcpy ([HD]to[HD]|PtoP)\b")
_DIRECTIONS = {"HtoH": Direction.HOST_TO_HOST, "HtoD": Direction.HOST_TO_DEVICE, "DtoH": Direction.DEVICE_TO_HOST,
               "DtoD": Direction.DEVICE_TO_DEVICE, "PtoP": Direction.PEER}


def direction(name: str) -> Direction:
    """The direction of a copy, by Kineto's name for it: `Memcpy HtoD (Pinned -> Device)`."""
    found = _COPY.match(name)
    return _DIRECTIONS[found[1]] if found else Direction.UNKNOWN


# The value of a column that the file does not state, from the event's name.
_TOLD_BY_NAME: dict[tuple[str, str], Callable[[str], int]] = {("copies", "direction"): direction}


def _bandwidth(trace: Trace, rows: np.ndarray) -> list[str]:
    took = trace.duration_ns[trace.copies["row"][rows]]
    rate = trace.copies["size_bytes"][rows] / np.maximum(took, 1)
    return [f'"memory bandwidth (GB/s)":{value:.6g},' for value in rate.tolist()]


# What Kineto's files also state; it follows from the rest.
_ALSO: dict[str, Callable[[Trace, np.ndarray], list[str]]] = {"copies": _bandwidth}


def texts(trace: Trace) -> tuple[np.ndarray, list[bytes]]:
    """The events that side tables describe, in order, and what to add to the `args` of each."""
    found: dict[int, str] = {}
    for table in SIDES:
        if not trace.has(table.name):
            continue
        columns = trace.tables[table.name]
        about = _about(table).name
        rows = np.flatnonzero(columns[about] >= 0)
        said = [""] * len(rows)
        for number, column in enumerate(_keyed(table)):
            value, key = columns[column.name][rows], text(column.kineto)
            for place in np.flatnonzero((value != column.default) | (number == 0)).tolist():
                said[place] += f"{key}:{_written(trace, column, int(value[place]))},"
        if table.name in _ALSO:
            said = [one + also for one, also in zip(said, _ALSO[table.name](trace, rows))]
        for event, words in zip(columns[about][rows].tolist(), said):
            found[event] = found.get(event, "") + words
    events = sorted(found)
    return np.array(events, np.int64), [found[event].encode() for event in events]


def top(trace: Trace) -> dict[str, dict[str, list[int]]]:
    """The tables that refer to nothing, as plain values."""
    return {table.name: {column.name: (trace.tables[table.name][column.name]
                                       + (trace.epoch_ns if column.clock else 0)).tolist() for column in table}
            for table in _AT_THE_TOP if trace.has(table.name)}


def read_top(build: TraceBuilder, tables: Any, base_ns: int) -> None:
    """Pass to the builder what `top` returned."""
    if not isinstance(tables, dict):
        raise ValueError(f"{TOP} should be an object of tables")
    for table in _AT_THE_TOP:
        if table.name not in tables:
            continue
        columns = tables[table.name]
        if not isinstance(columns, dict) or not all(isinstance(columns.get(column.name), list) for column in table):
            raise ValueError(f"the table {table.name} should have the lists {', '.join(table.by_name)}")
        if len({len(columns[column.name]) for column in table}) != 1:
            raise ValueError(f"the columns of the table {table.name} have different lengths")
        build.add_columns(table.name, {
            column.name: np.array([integer(f"{table.name}.{column.name}", column, value, base_ns if column.clock else 0)
                                   for value in columns[column.name]], column.dtype) for column in table})


def integer(what: str, column: Column, value: Any, base: int = 0) -> int:
    """A number from a file, counted from a base, if the column can hold it."""
    limits = np.iinfo(column.dtype)
    if not isinstance(value, int) or not limits.min <= value - base <= limits.max:
        raise ValueError(f"{what} should be an integer of {limits.bits} bits, not {str(value)[:40]!r}")
    return value - base


class SideRows:
    """Collects the rows of side tables while a file is read."""

    def __init__(self, build: TraceBuilder) -> None:
        self._build = build
        self._noted: dict[str, dict[int, dict[str, int]]] = {table.name: {} for table in SIDES}

    def note(self, number: int, values: dict[str, Any]) -> None:
        """Read what one of the distinct texts of arguments states; `number` is the text's."""
        for table in SIDES:
            mark, *_ = keyed = _keyed(table)
            if mark.kineto in values:
                self._noted[table.name][number] = {
                    column.name: self._read(column, values[column.kineto]) for column in keyed
                    if column.kineto in values}

    def fill(self, number: np.ndarray, pair: np.ndarray, pairs: Sequence[tuple[str | None, str]]) -> None:
        """Pass all rows to the builder: each event has the number of its arguments and of its category and name."""
        for table in SIDES:
            noted = self._noted[table.name]
            if not noted:
                continue
            fits = np.array([category in table.categories for category, _ in pairs], bool)
            has = np.zeros(int(max(number.max(), max(noted))) + 2, bool)
            has[list(noted)] = True
            rows = np.flatnonzero(has[number] & fits[pair])
            if len(rows):
                self._fill(table, rows, [noted[one] for one in number[rows].tolist()],
                           [pairs[one][1] for one in pair[rows].tolist()])

    def _fill(self, table: Table, rows: np.ndarray, noted: Sequence[dict[str, int]], names: Sequence[str]) -> None:
        columns = {_about(table).name: rows}
        for column in _keyed(table):
            told = _TOLD_BY_NAME.get((table.name, column.name))
            if any(column.name in values for values in noted) or told is not None:
                columns[column.name] = np.array(
                    [values[column.name] if column.name in values else column.default if told is None else told(name)
                     for values, name in zip(noted, names)], column.dtype)
        self._build.add_columns(table.name, columns)

    def _read(self, column: Column, value: Any) -> int:
        if column.refers == "names":
            return self._build.name(value if isinstance(value, str) else text(value))
        if column.codes is not None:
            return _code(column, column.codes, value)
        return integer(column.kineto, column, value)


def _keyed(table: Table) -> list[Column]:
    return [column for column in table if column.kineto]


def _about(table: Table) -> Column:
    assert table.about is not None
    return table.about


def _written(trace: Trace, column: Column, value: int) -> str:
    if column.refers == "names":
        return text(trace.names[value] if value >= 0 else "")
    return text(column.codes(value).name) if column.codes is not None else str(value)


def _code(column: Column, codes: type[Code], value: Any) -> int:
    if value not in codes.__members__:
        raise ValueError(f"{column.kineto} should be one of {', '.join(codes.__members__)}, not {str(value)[:40]!r}")
    return int(codes[value])
