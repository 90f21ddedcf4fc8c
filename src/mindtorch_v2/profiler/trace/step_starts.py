"""Steps that begin with the Python call that they end in.

A step lasts from one call of `prof.step()` to the next. Where a loop calls a function that ends with `prof.step()`,
each step begins within the last moments of one call of it and ends within the next, so that they cannot be nested.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .columns import Kind
from .trace import Trace, _above, rows_around, split_python


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
    events["parent"] = np.full(len(order), -1, np.int32)
    for rows in split_python(events):
        events["parent"][rows] = _above(events, rows)
    memory = {**trace.memory, "row": rows_around(events, trace.memory["thread"], trace.memory["time_ns"])}
    uses = {**trace.uses, "row": place[trace.uses["row"]]}
    for column in (*events.values(), memory["row"], uses["row"]):
        column.flags.writeable = False
    return replace(trace, events=events, memory=memory, uses=uses)
