"""Parts of a trace: some rows of its tables, or a stretch of time. References stay right, as the schema says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..schema import FACTS, POOLS, TABLES
from ..trace import Columns, Trace, count_rows, frozen
from .tree import lifted


def select(trace: Trace, rows: Mapping[str, np.ndarray]) -> Trace:
    """The trace with only some rows, given as a mask per table; other tables keep all the rows that they can.

    A row whose owner is removed is removed too. In a tree, a row whose parent is removed goes below the nearest
    ancestor that stays. Any other reference to a removed row becomes -1. Pools stay unchanged.
    """
    kept = {name: rows.get(name, np.ones(count_rows(table), bool)) for name, table in trace.tables.items()}
    changed = True
    while changed:  # as many rounds as owners own owners
        changed = False
        for name, table in trace.tables.items():
            for column in TABLES[name]:
                if column.owned and column.refers in kept:
                    owner = table[column.name]
                    stays = np.append(kept[column.refers], False)[owner] & (owner >= 0)
                    if (kept[name] & ~stays).any():
                        kept[name] = kept[name] & stays
                        changed = True
    if all(mask.all() for mask in kept.values()):
        return trace
    place = {name: np.append(np.where(mask, np.cumsum(mask) - 1, -1), -1).astype(np.int32)
             for name, mask in kept.items()}
    tables: dict[str, Columns] = {}
    for name, table in trace.tables.items():
        mask, result = kept[name], {}
        for column in TABLES[name]:
            value = table[column.name]
            if column.refers == name:
                value = lifted(value, mask)
            value = value if mask.all() else value[mask]
            result[column.name] = value if column.refers not in place else place[column.refers][value]
        tables[name] = frozen(result)
    return replace(trace, tables=tables)


def between(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    """The trace with only what began between two times of the host clock, both included."""
    rows = {}
    for name, table in trace.tables.items():
        time = TABLES[name].time
        if time is not None and TABLES[name].order:
            rows[name] = (table[time.name] >= start_ns) & (table[time.name] <= end_ns)
    return select(trace, rows)


def without_threads(trace: Trace, unwanted: np.ndarray) -> Trace:
    """The trace without some threads, given as a mask: without what happened there, and without their pool entries."""
    rows = {name: ~unwanted[table["thread"]] for name, table in trace.tables.items() if "thread" in table}
    number = (np.cumsum(~unwanted) - 1).astype(np.int32)
    trace = select(trace, rows)
    tables = {name: frozen({**table, "thread": number[table["thread"]]}) if "thread" in table else table
              for name, table in trace.tables.items()}
    threads = [info for info, gone in zip(trace.threads, unwanted.tolist(), strict=True) if not gone]
    return replace(trace, tables=tables, threads=threads)


def shifted(trace: Trace, offset_ns: int) -> Trace:
    """The trace with all times moved to a host clock that is this far ahead; times since 1970 stay the same."""
    if not offset_ns:
        return trace
    tables = {name: frozen({column.name: table[column.name] + offset_ns if column.clock else table[column.name]
                            for column in TABLES[name]}) for name, table in trace.tables.items()}
    facts = {fact: getattr(trace, fact) + offset_ns for fact, _, clock in FACTS if clock}
    return replace(trace, tables=tables, epoch_ns=trace.epoch_ns - offset_ns, **facts)


assert {column.refers for table in TABLES.values() for column in table} - {None} <= {*TABLES, *POOLS}
