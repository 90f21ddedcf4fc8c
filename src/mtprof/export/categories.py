"""A trace with only some categories of events, for a filter of activities."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..schema import Kind
from ..store import kineto_words as words
from ..tables.distinct import distinct
from ..tables.select import select
from ..trace import Trace

INSTANTS = "cpu_instant_event"  # changes of memory, and allocations that failed


def of_categories(trace: Trace, wanted: Collection[str]) -> Trace:
    """The trace with only events whose `cat` in a Chrome trace is among `wanted`."""
    events = trace.events
    code, rows = distinct([events["kind"], events["name"], events["device"] != 0])
    others = trace.metadata.get("other_categories", {})
    kept = np.array([
        words.category(Kind(int(events["kind"][row])), trace.names[events["name"][row]], int(events["device"][row]),
                       others) in wanted
        for row in rows.tolist()], bool)
    chosen = {"events": kept[code] if len(kept) else np.zeros(0, bool)}
    if INSTANTS not in wanted:
        for table in ("memory", "failures"):
            if trace.has(table):
                chosen[table] = np.zeros(len(getattr(trace, table)["time_ns"]), bool)
    return select(trace, chosen)
