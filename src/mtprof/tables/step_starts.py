"""Steps that begin inside the Python call in which they end.

A step lasts from one call of `prof.step()` to the next. If a loop calls a function that ends with `prof.step()`, each
step begins in the last moments of one call of the function and ends inside the next, so the two cannot nest.
"""

from __future__ import annotations

import numpy as np

from ..schema import TABLES, Kind
from ..trace import Columns, Trace, split_python
from .nesting import all_parents, rows_around


def with_steps_in_calls(trace: Trace) -> Trace:
    """The trace with each such step starting at the outermost Python call that began during it and outlasts it."""
    events = trace.events
    start, end, thread = events["start_ns"], events["end_ns"], events["thread"]
    calls = split_python(events)[1]
    moved = start.copy()
    for row in np.flatnonzero(events["kind"] == Kind.STEP).tolist():
        among = calls[(thread[calls] == thread[row]) & (start[calls] > start[row]) & (start[calls] < end[row])
                      & (end[calls] > end[row])]
        if len(among):
            moved[row] = start[among].min() + 1  # just after, so that the step is within the call
    return trace if np.array_equal(moved, start) else _with_starts(trace, moved)


def _with_starts(trace: Trace, start: np.ndarray) -> Trace:
    """The trace with other starts: rows in their new order, and new parents."""
    order = np.lexsort((-trace.events["end_ns"], start, trace.events["thread"]))
    place = np.empty(len(order) + 1, np.int32)
    place[order] = np.arange(len(order))
    place[-1] = -1  # the entry for -1
    events = {key: value[order] for key, value in {**trace.events, "start_ns": start}.items()}
    events["parent"] = all_parents(events)
    tables: dict[str, Columns] = {"events": events}
    for name, table in trace.tables.items():
        for column in TABLES[name]:
            if column.refers == "events" and name != "events":
                around = TABLES[name].placed == "around"
                tables[name] = {**table, column.name: rows_around(events, table["thread"], table["time_ns"]) if around
                                else place[table[column.name]]}
    return trace.with_tables(**tables)
