"""Equality of traces, for tests: the same rows, whatever numbers their tables use."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ..arguments import canonical
from ..schema import FACTS, FLAGS, TABLES, Column
from ..trace import ThreadInfo, Trace, count_rows

_IDENTITIES = frozenset({"trace_id", "host_name"})


def assert_traces_equal(left: Trace, right: Trace, *, tables: Collection[str] | None = None) -> None:
    """Raise AssertionError with the first difference between two traces.

    It compares what rows say, not how tables number it: names, threads, inputs and stacks by value, times as
    nanoseconds since 1970, tuples like lists. Unused entries of pools, `trace_id`, `host_name` and `first_id` do not
    count. `tables` limits the comparison, for files that do not hold all tables.
    """
    for fact, _, clock in FACTS:
        if fact in ("epoch_ns", "first_id"):
            continue
        ours, theirs = (getattr(t, fact) + (t.epoch_ns if clock else 0) for t in (left, right))
        assert ours == theirs, f"{fact}: {ours} and {theirs}" + " nanoseconds since 1970" * bool(clock)
    ours, theirs = _metadata(left), _metadata(right)
    assert ours == theirs, f"metadata: {ours} and {theirs}"
    ours, theirs = (sorted(map(_thread, trace.threads)) for trace in (left, right))
    assert ours == theirs, f"threads: {ours} and {theirs}"
    wanted = [name for name in TABLES if tables is None or name in tables]
    if tables is None:
        assert set(left.tables) == set(right.tables), f"tables: {sorted(left.tables)} and {sorted(right.tables)}"
    orders = tuple({"events": _order(trace)} for trace in (left, right))
    for name in wanted:
        if name == "stacks":
            continue  # the frames that rows refer to are compared instead
        counts = [count_rows(trace.optional(name)) for trace in (left, right)]
        assert counts[0] == counts[1], f"{counts[0]} {name}, and {counts[1]}"
        for column in TABLES[name]:
            ours, theirs = (_values(trace, name, column, order) for trace, order in zip((left, right), orders))
            for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                assert one == other, f"{name}.{column.name}, row {place}: {one!r} and {other!r}"


def _metadata(trace: Trace) -> dict[str, Any]:
    return {
        key: bool(value) if key in FLAGS else canonical(value) for key, value in trace.metadata.items()
        if key not in _IDENTITIES and not (key in FLAGS and not value)
    }


def _thread(info: ThreadInfo) -> tuple[int, int, str, str]:
    # A thread without a name is shown as "thread 7" or "stream 7", and has that name after it was in a file.
    unnamed = info.name in ("", f"thread {info.tid}", f"stream {info.tid}")
    return info.pid, info.tid, "" if unnamed else info.name, info.process_name


def _order(trace: Trace) -> np.ndarray:
    """Rows sorted by their thread's value instead of its number; other ties keep their order."""
    ranked = sorted(range(len(trace.threads)), key=lambda number: _thread(trace.threads[number]))
    rank = np.argsort(np.array(ranked, np.int64))
    events = trace.events
    thread = rank[events["thread"]] if len(trace) else events["thread"]
    return np.lexsort((-events["end_ns"], events["start_ns"], thread))


def _values(trace: Trace, table: str, column: Column, orders: dict[str, np.ndarray]) -> list[Any]:
    """A column with numbers replaced by the values they stand for."""
    values = trace.optional(table)[column.name]
    if table in orders:
        values = values[orders[table]]
    if column.clock:
        return [value + trace.epoch_ns for value in values.tolist()]
    if column.refers in orders:
        place = np.full(len(orders[column.refers]) + 1, -1, np.int64)
        place[orders[column.refers]] = np.arange(len(orders[column.refers]))
        return place[values].tolist()
    numbers = values.tolist()
    if column.refers == "threads":
        return [_thread(trace.threads[number]) for number in numbers]
    if column.refers == "stacks":
        frames = {number: trace.stack(number) for number in set(numbers)}
        return [frames[number] for number in numbers]
    if column.refers == "inputs":
        texts = {number: repr(canonical(trace.inputs[number])) if number >= 0 else None for number in set(numbers)}
        return [texts[number] for number in numbers]
    if column.refers in ("names", "frames"):
        pool = getattr(trace, column.refers)
        return [pool[number] if number >= 0 else None for number in numbers]
    return numbers
