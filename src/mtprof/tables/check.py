"""The rules that every trace must keep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..errors import BadTrace
from ..schema import POOLS, TABLES, Table
from ..trace import Columns, Trace, count_rows


def check(trace: Trace) -> Trace:
    """Raise BadTrace if a rule is broken; otherwise return the trace, so that calls can be chained."""
    for problem in problems(trace):
        raise BadTrace(problem)
    return trace


def problems(trace: Trace) -> Iterator[str]:
    """All rules that a trace breaks, in words."""
    structural = [*_structure(trace)]
    yield from structural
    if not structural:
        yield from _nesting(trace)


def _structure(trace: Trace) -> Iterator[str]:
    if "events" not in trace.tables:
        yield "there is no table of events"
    sizes = {name: len(getattr(trace, name)) for name in POOLS}
    for name, table in trace.tables.items():
        if name not in TABLES:
            yield f"there is no table {name!r} in the schema"
            continue
        if set(table) != set(TABLES[name].by_name):
            yield f"table {name} has the columns {sorted(table)} instead of {sorted(TABLES[name].by_name)}"
            continue
        sizes[name] = count_rows(table)
    for name, table in trace.tables.items():
        if name in TABLES and name in sizes:
            yield from _columns(TABLES[name], table, sizes)


def _columns(table: Table, columns: Columns, sizes: dict[str, int]) -> Iterator[str]:
    for column in table:
        value = columns[column.name]
        what = f"column {table.name}.{column.name}"
        if value.dtype != column.dtype:
            yield f"{what} is {value.dtype} instead of {np.dtype(column.dtype)}"
        elif len(value) != sizes[table.name]:
            yield f"{what} has {len(value)} rows, but the table has {sizes[table.name]}"
        elif len(value) and column.refers is not None:
            low, high, size = int(value.min()), int(value.max()), sizes.get(column.refers, 0)
            if low < min(column.default, 0) or high >= size:
                wrong = low if low < min(column.default, 0) else high
                yield f"{what} refers to entry {wrong} of {column.refers}, which has {size}"
        elif wrong_code := column.unknown_code(value):
            yield f"{what} {wrong_code}"


def _nesting(trace: Trace) -> Iterator[str]:
    stacks = trace.optional("stacks")
    if (stacks["caller"] >= np.arange(len(stacks["caller"]))).any():
        yield "a stack comes before the stack of its caller"
    events = trace.events
    late = np.flatnonzero(events["end_ns"] < events["start_ns"])
    if len(late):
        yield f"event {late[0]} ends before it starts, like {len(late) - 1} others"
    parent = events["parent"]
    rows = np.flatnonzero(parent >= 0)
    above = parent[rows]
    for wrong, what in (
        (above >= rows, "comes before its parent"),
        (events["thread"][above] != events["thread"][rows], "has a parent on another thread"),
        (events["start_ns"][above] > events["start_ns"][rows], "starts before its parent"),
        (events["end_ns"][above] < events["end_ns"][rows], "ends after its parent"),
    ):
        if wrong.any():
            yield f"event {rows[wrong][0]} {what}, like {int(wrong.sum()) - 1} others"
            return
    negative = np.flatnonzero(trace.self_ns() < 0)
    if len(negative) and not len(late):
        yield f"event {negative[0]} has less time than its children, like {len(negative) - 1} others"
