"""Steps that begin with the Python call that they end in.

A step lasts from one call of `prof.step()` to the next. Where a loop calls a function that ends with `prof.step()`,
each step begins within the last moments of one call of it and ends within the next, so that they cannot be nested.
"""

from __future__ import annotations

import numpy as np

from ..schema import TABLES, Kind
from ..trace import Columns, Trace, split_python
from .nesting import all_parents, rows_around


def with_steps_in_calls(trace: Trace) -> Trace:
    """The trace in which a step begins with the outermost Python call that began during the step and outlasts it."""
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
    """The trace with other starts: rows in their new order, and parents found again."""
    order = np.lexsort((-trace.events["end_ns"], start, trace.events["thread"]))
    place = np.empty(len(order) + 1, np.int32)
    place[order] = np.arange(len(order))
    place[-1] = -1  # where -1 leads
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
