"""Equality of traces, for tests: the same events, whatever numbers their tables use."""

from __future__ import annotations

from typing import Any

import numpy as np

from .columns import COLUMNS, FAILURE_COLUMNS, MEMORY_COLUMNS
from .kineto_words import FLAGS, canonical
from .trace import ThreadInfo, Trace

_IDENTITIES = frozenset({"trace_id", "host_name"})


def assert_traces_equal(left: Trace, right: Trace) -> None:
    """Raise AssertionError that names the first difference between two traces.

    Compared are what events and memory changes say, not how tables number it: names, threads, inputs and stacks by
    value, times as nanoseconds since 1970, tuples like lists. Unused table entries, `trace_id` and `host_name` do not
    count.
    """
    assert len(left) == len(right), f"{len(left)} events, and {len(right)}"
    for fact in ("start_ns", "end_ns"):
        ours, theirs = getattr(left, fact) + left.epoch_ns, getattr(right, fact) + right.epoch_ns
        assert ours == theirs, f"{fact}: {ours} and {theirs} nanoseconds since 1970"
    assert left.dropped == right.dropped, f"dropped: {left.dropped} and {right.dropped}"
    ours, theirs = _metadata(left), _metadata(right)
    assert ours == theirs, f"metadata: {ours} and {theirs}"
    ours, theirs = sorted(map(_thread, left.threads)), sorted(map(_thread, right.threads))
    assert ours == theirs, f"threads: {ours} and {theirs}"
    left_order, right_order = _order(left), _order(right)
    for column in COLUMNS:
        _same(f"event column {column.name}", _values(left, left.events, column.name, left_order),
              _values(right, right.events, column.name, right_order))
    assert len(left.memory["time_ns"]) == len(right.memory["time_ns"]), "numbers of memory changes differ"
    everything = np.arange(len(left.memory["time_ns"]))
    for column in MEMORY_COLUMNS:
        ours = _values(left, left.memory, column.name, everything, left_order)
        _same(f"memory column {column.name}", ours,
              _values(right, right.memory, column.name, everything, right_order))
    assert len(left.failures["time_ns"]) == len(right.failures["time_ns"]), "numbers of failed allocations differ"
    everything = np.arange(len(left.failures["time_ns"]))
    for column in FAILURE_COLUMNS:
        _same(f"failure column {column.name}", _values(left, left.failures, column.name, everything),
              _values(right, right.failures, column.name, everything))


def _same(what: str, ours: list[Any], theirs: list[Any]) -> None:
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one == other, f"{what}, entry {place}: {one!r} and {other!r}"


def _metadata(trace: Trace) -> dict[str, Any]:
    return {
        key: bool(value) if key in FLAGS else canonical(value) for key, value in trace.metadata.items()
        if key not in _IDENTITIES and not (key in FLAGS and not value)
    }


def _thread(info: ThreadInfo) -> tuple[int, int, str, str]:
    # A thread without a name is shown as "thread 7" or "stream 7", and so has that name once it was in a file.
    unnamed = info.name in ("", f"thread {info.tid}", f"stream {info.tid}")
    return info.pid, info.tid, "" if unnamed else info.name, info.process_name


def _order(trace: Trace) -> np.ndarray:
    """Rows sorted by what their thread is rather than by its number; other ties keep their order."""
    ranked = sorted(range(len(trace.threads)), key=lambda number: _thread(trace.threads[number]))
    rank = np.argsort(np.array(ranked, np.int64))
    events = trace.events
    thread = rank[events["thread"]] if len(trace) else events["thread"]
    return np.lexsort((-events["end_ns"], events["start_ns"], thread))


def _values(trace: Trace, columns: dict[str, np.ndarray], name: str, order: np.ndarray,
            event_order: np.ndarray | None = None) -> list[Any]:
    """A column with numbers replaced by what they stand for."""
    column = columns[name][order]
    if name in ("parent", "row"):
        place = np.full(len(trace) + 1, -1, np.int64)
        place[order if event_order is None else event_order] = np.arange(len(trace))
        return place[column].tolist()
    if name in ("start_ns", "end_ns", "time_ns"):
        return [value + trace.epoch_ns for value in column.tolist()]
    if name == "thread":
        return [_thread(trace.threads[number]) for number in column.tolist()]
    tables: dict[str, list[Any]] = {
        "name": trace.names, "overload": trace.names, "module": trace.names, "stack": trace.stacks,
        "inputs": [repr(canonical(arguments)) for arguments in trace.inputs],
    }
    if name in tables:
        return [tables[name][number] if number >= 0 else None for number in column.tolist()]
    return column.tolist()
