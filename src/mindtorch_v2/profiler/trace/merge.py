"""Traces of several processes as one: the first one's recording, with what the others did in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .columns import COLUMNS, FAILURE_COLUMNS, MEMORY_COLUMNS
from .trace import Trace

_NAMES = ("name", "overload", "module")  # columns that point into `names`
_IDENTITY_BITS = 48  # an identity is an address of a user's program, which has no more


def merged(trace: Trace, others: Sequence[Trace], *, with_memory: bool = True) -> Trace:
    """`trace` with the events, threads and memory changes of `others`, whose times are by the same clock.

    Rows of `trace` keep their places and numbers; those of the others follow, thread by thread, so that nothing of what
    nesting found has to be found again. Running totals of memory stay those of each process. An identity of memory
    means something in its own process only; the others' get the number of their process in their upper bits.
    """
    if not others:
        return trace
    names, threads = list(trace.names), list(trace.threads)
    inputs, stacks = list(trace.inputs), list(trace.stacks)
    known = {text: number for number, text in enumerate(names)}
    events = {column.name: [trace.events[column.name]] for column in COLUMNS}
    memory = {column.name: [trace.memory[column.name]] for column in MEMORY_COLUMNS}
    failures = {column.name: [trace.failures[column.name]] for column in FAILURE_COLUMNS}
    rows = len(trace)
    for number, other in enumerate(others, start=1):
        table = []
        for text in other.names:
            table.append(known.setdefault(text, len(names)))
            if table[-1] == len(names):
                names.append(text)
        lookup = np.array([*table, -1], np.int32)  # the last entry is that of -1
        shifts = {"thread": len(threads), "parent": rows, "inputs": len(inputs), "stack": len(stacks)}
        for key, parts in events.items():
            value = other.events[key]
            if key in _NAMES:
                value = lookup[value]
            elif key in shifts:
                value = _shifted(value, shifts[key])
            parts.append(value)
        if with_memory:
            changes = {**other.memory, "thread": other.memory["thread"] + len(threads),
                       "row": _shifted(other.memory["row"], rows),
                       "address": other.memory["address"] | (number << _IDENTITY_BITS)}
            for key, parts in memory.items():
                parts.append(changes[key])
        for key, parts in failures.items():
            parts.append(other.failures[key] + (len(threads) if key == "thread" else 0))
        rows += len(other)
        threads += other.threads
        inputs += other.inputs
        stacks += other.stacks
    columns = _joined(COLUMNS, events)
    changed = _joined(MEMORY_COLUMNS, memory)
    order = np.argsort(changed["time_ns"], kind="stable")
    changed = {key: value[order] for key, value in changed.items()}
    failed = _joined(FAILURE_COLUMNS, failures)
    for column in (*columns.values(), *changed.values(), *failed.values()):
        column.flags.writeable = False
    return replace(trace, events=columns, memory=changed, failures=failed, names=names, threads=threads,
                   inputs=inputs, stacks=stacks, dropped=trace.dropped + sum(other.dropped for other in others))


def within(trace: Trace, start_ns: int, end_ns: int) -> Trace:
    """The trace with only what began between two times."""

    def inside(times: np.ndarray) -> np.ndarray:
        return (times >= start_ns) & (times <= end_ns)

    kept = inside(trace.events["start_ns"])
    tables = [{key: value[inside(table["time_ns"])] for key, value in table.items()}
              for table in (trace.memory, trace.failures)]
    if kept.all() and len(tables[0]["row"]) == len(trace.memory["row"]):
        return replace(trace, failures=tables[1])
    place = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)
    events = {key: value[kept] for key, value in trace.events.items()}
    events["parent"], tables[0]["row"] = place[events["parent"]], place[tables[0]["row"]]
    return replace(trace, events=events, memory=tables[0], failures=tables[1])


def _shifted(index: np.ndarray, by: int) -> np.ndarray:
    """Numbers of rows in a table that now begins further down; -1 stays what it is."""
    return np.where(index >= 0, index + index.dtype.type(by), index)


def _joined(columns: Sequence[Any], parts: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    return {column.name: np.concatenate(parts[column.name]).astype(column.dtype, copy=False) for column in columns}
