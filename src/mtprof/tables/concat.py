"""Joins several traces: the first one's recording, with the rows of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..builder import ordered
from ..schema import POOLS, TABLES, Pool
from ..trace import Columns, Trace, count_rows, frozen

# Rows that others refer to keep their places. Rows sorted by thread stay sorted, because threads are appended.
_REFERRED_TO = frozenset(column.refers for table in TABLES.values() for column in table)
_IDENTITY_BITS = 48  # an identity is an address in a user program, which has no more bits


def concatenated(trace: Trace, others: Sequence[Trace], *, without: Sequence[str] = ()) -> Trace:
    """`trace` with the rows of `others`, except those of some tables. All times must be on one clock.

    In a table without an order of its own, rows of `trace` come first and those of the others follow. Events are sorted
    by thread, and threads of the others come later, so that nesting need not be computed again. Running totals of
    memory stay per process. An identity has a meaning only in its own process, so the others' identities get the number
    of their process in their upper bits.
    """
    if not others:
        return trace
    pools: dict[str, list[Any]] = {name: list(getattr(trace, name)) for name in POOLS}
    known = {name: {_key(pool, value): number for number, value in enumerate(pools[name])}
             for name, pool in POOLS.items() if pool.unique}
    parts: dict[str, list[Columns]] = {name: [table] for name, table in trace.tables.items()}
    begins = {name: count_rows(table) for name, table in trace.tables.items()}
    for number, other in enumerate(others, start=1):
        numbers = {name: _numbers(pool, getattr(other, name), pools[name], known.get(name))
                   for name, pool in POOLS.items()}
        for name, table in other.tables.items():
            if name not in without:
                parts.setdefault(name, []).append(_renumbered(name, table, numbers, begins, number))
        for name, table in other.tables.items():
            if name not in without:
                begins[name] = begins.get(name, 0) + count_rows(table)
    tables: dict[str, Columns] = {}
    for name in TABLES:
        if name in parts:
            whole = {column.name: np.concatenate([part[column.name] for part in parts[name]])
                     for column in TABLES[name]}
            if name not in _REFERRED_TO:
                whole = ordered(TABLES[name], whole)
            tables[name] = frozen(whole)
    facts: dict[str, Any] = {"dropped": trace.dropped + sum(other.dropped for other in others), **pools}
    return replace(trace, tables=tables, **facts)


def _key(pool: Pool, value: Any) -> Any:
    return repr(value) if any(part.type == "json" for part in pool.fields) else value


def _numbers(pool: Pool, values: Sequence[Any], joined: list[Any], known: dict[Any, int] | None) -> np.ndarray:
    """The index of each entry of a pool in the joined pool, to which new ones are added; one more entry for -1."""
    found = []
    for value in values:
        if known is None:
            place = len(joined)
        else:
            place = known.setdefault(_key(pool, value), len(joined))
        if place == len(joined):
            joined.append(value)
        found.append(place)
    return np.array([*found, -1], np.int32)


def _renumbered(name: str, table: Columns, numbers: dict[str, np.ndarray], begins: dict[str, int],
                process: int) -> Columns:
    result = {}
    for column in TABLES[name]:
        value = table[column.name]
        if column.refers in numbers:
            value = numbers[column.refers][value]
        elif column.refers is not None:
            value = np.where(value >= 0, value + value.dtype.type(begins.get(column.refers, 0)), value)
        elif column.identity:
            value = np.where(value != 0, value | (process << _IDENTITY_BITS), value)
        result[column.name] = value
    return result
