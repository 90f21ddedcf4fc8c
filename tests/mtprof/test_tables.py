"""Selecting, shifting and joining follow the schema: every reference stays right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import traces

from length import examples
from mtprof.builder import TraceBuilder
from mtprof.schema import POOLS, TABLES, Kind
from mtprof.tables.check import _structure, check
from mtprof.tables.compare import assert_traces_equal
from mtprof.tables.concat import concatenated
from mtprof.tables.nesting import enclosing_rows, parents
from mtprof.tables.select import between, select, shifted, without_threads
from mtprof.tables.tree import depths, subtree_sums
from mtprof.trace import MissingTable, ThreadInfo, Trace

LOOSE = settings(max_examples=examples(60), deadline=None,
                 suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def marked(trace: Trace) -> dict[str, list[tuple[object, ...]]]:
    """Each row with what its references lead to, told by a mark that no operation changes."""
    result = {}
    for name, table in trace.tables.items():
        columns = [column for column in TABLES[name] if not column.clock and column.refers not in TABLES]
        result[name] = list(zip(*(told(trace, column.refers, table[column.name].tolist()) for column in columns)))
    return result


def told(trace: Trace, pool: str | None, values: list[int]) -> list[object]:
    """What the numbers of a column stand for."""
    return [repr(getattr(trace, pool)[value]) if value >= 0 else None for value in values] if pool else values


@LOOSE
@given(trace=traces(), data=st.data())
def test_a_choice_of_rows(trace, data):
    rows = {name: np.array(data.draw(st.lists(st.booleans(), min_size=len(table[TABLES[name].columns[0].name]),
                                              max_size=len(table[TABLES[name].columns[0].name]))), bool)
            for name, table in trace.tables.items()}
    chosen = select(trace, rows)
    assert list(_structure(chosen)) == []
    before, after = marked(trace), marked(chosen)
    for name, mask in rows.items():
        kept = [row for row, keep in zip(before[name], mask.tolist()) if keep]
        owned = any(column.owned for column in TABLES[name])
        assert after[name] == kept if not owned else set(map(repr, after[name])) <= set(map(repr, kept))


@LOOSE
@given(trace=traces(), offset=st.integers(-(2**40), 2**40))
def test_another_clock(trace, offset):
    moved = shifted(trace, offset)
    assert_traces_equal(moved, trace)
    if len(trace) and offset:
        assert (moved.events["start_ns"] != trace.events["start_ns"]).all()


@LOOSE
@given(first=traces(), second=traces())
def test_two_traces_as_one(first, second):
    both = concatenated(first, [second])
    assert list(_structure(both)) == []
    whole = marked(both)
    for name in both.tables:
        parts = [*marked(first).get(name, []), *marked(second).get(name, [])]
        identities = any(column.identity for column in TABLES[name])
        assert len(whole[name]) == len(parts)
        if not identities:
            assert sorted(map(repr, whole[name])) == sorted(map(repr, parts))
    assert both.dropped == first.dropped + second.dropped
    for name in ("names", "frames", "inputs"):
        assert len(set(map(repr, getattr(both, name)))) == len(getattr(both, name)), "equal entries are one"
    for name, pool in POOLS.items():
        assert pool.unique or len(getattr(both, name)) == len(getattr(first, name)) + len(getattr(second, name))


def two_threads() -> Trace:
    build = TraceBuilder()
    for tid in (1, 2):
        thread = build.thread(ThreadInfo(1, tid))
        build.add(name=f"outer {tid}", kind=Kind.SCOPE, start_ns=0, end_ns=100, thread=thread)
        build.add(name=f"inner {tid}", kind=Kind.OP, start_ns=10 * tid, end_ns=50, thread=thread)
        build.add_row("memory", time_ns=10 * tid + 1, thread=thread, size_bytes=tid)
    build.add_columns("uses", {"thread": np.array([0, 1]), "time_ns": np.array([9, 15]), "address": np.array([5, 6])})
    return check(build.finish(end_ns=100))


def test_uses_go_with_their_ops():
    trace = between(two_threads(), 15, 100)
    assert [trace.names[name] for name in trace.events["name"]] == ["inner 2"]
    assert trace.uses["row"].tolist() == [0]
    assert trace.uses["address"].tolist() == [6]
    assert trace.memory["row"].tolist() == [0]
    assert trace.events["parent"].tolist() == [-1]


def test_threads_that_are_left_out():
    trace = check(without_threads(two_threads(), np.array([True, False])))
    assert [trace.names[name] for name in trace.events["name"]] == ["outer 2", "inner 2"]
    assert trace.threads == [ThreadInfo(1, 2)]
    assert trace.memory["thread"].tolist() == [0]


def test_a_table_that_is_not_there():
    trace = two_threads()
    with pytest.raises(MissingTable, match=r"no table 'modules'.*with_modules=True.*Chrome traces have it only if"):
        _ = trace.modules
    assert len(trace.optional("modules")["path"]) == 0
    assert not trace.has("modules")


@LOOSE
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 12)), max_size=30))
def test_parents_contain_their_children(events):
    rows = sorted((thread, start, -(start + length)) for thread, start, length in events)
    thread, start, end = (np.array(column, np.int64) for column in zip(*rows)) if rows else [np.zeros(0, np.int64)] * 3
    end = -end
    above = parents(thread, start, end)
    inside = np.flatnonzero(above >= 0)
    assert (above[inside] < inside).all()
    assert (thread[above[inside]] == thread[inside]).all()
    assert (start[above[inside]] <= start[inside]).all()
    assert (end[above[inside]] >= end[inside]).all()
    children = np.bincount(above[inside], (end - start)[inside], minlength=len(rows))
    assert (children <= end - start).all(), "no event has less time than its children"


def test_the_innermost_event_at_an_instant_deep_down():
    depth = 500
    events = {"thread": np.zeros(depth, np.int64), "start_ns": np.arange(depth), "end_ns": 10_000 - np.arange(depth),
              "parent": np.arange(depth) - 1}
    asked = np.array([0, 10, depth, 9_000, 9_900, 10_000, 10_001])
    found = enclosing_rows(events, np.zeros(len(asked), np.int64), asked)
    assert found.tolist() == [0, 10, depth - 1, depth - 1, 100, 0, -1]


@LOOSE
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(-5, 5)), min_size=1, max_size=200), st.booleans())
def test_sums_of_trees(rows, deep):
    parent = np.array([row - 1 if deep or not row else min(back, row) - 1 for row, (back, _) in enumerate(rows)])
    own = np.array([value for _, value in rows])
    expected = own.tolist()
    for row in reversed(range(len(rows))):
        if parent[row] >= 0:
            expected[parent[row]] += expected[row]
    assert subtree_sums(parent, own).tolist() == expected
    assert all(depths(parent)[row] == (depths(parent)[above] + 1 if above >= 0 else 0)
               for row, above in enumerate(parent.tolist()))


def test_times_too_far_apart_to_add_up():
    far = 2**62
    thread, start, end = np.array([0, 0, 5, 5]), np.array([-far, 1, 0, 1]), np.array([far, 2, 3, 2])
    assert parents(thread, start, end).tolist() == [-1, 0, -1, 2]


@pytest.mark.parametrize(("table", "row", "message"), [
    ("events", {"name": 0, "durration": 1}, "table 'events' has no column 'durration'"),
    ("stacks", {"time_ns": 1}, "table 'stacks' has no column 'time_ns'"),
    ("evnts", {"name": 0}, "no table 'evnts'"),
])
def test_columns_that_the_schema_does_not_know(table, row, message):
    with pytest.raises(ValueError, match=message):
        TraceBuilder().add_row(table, **row)
    with pytest.raises(ValueError, match=message):
        TraceBuilder().add_columns(table, {name: np.array([value]) for name, value in row.items()})
