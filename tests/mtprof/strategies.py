"""Traces for property tests, generated from the schema alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from mtprof.builder import put_in_order
from mtprof.schema import POOLS, TABLES, Column
from mtprof.trace import Arguments, Frame, TensorInput, ThreadInfo, Trace

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INT32 = st.integers(-(2**31), 2**31 - 1)
SIZES = st.lists(st.integers(0, 2**40), max_size=3).map(tuple)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False),
                  st.complex_numbers(allow_nan=False), TEXT)
TENSOR = st.builds(TensorInput, SIZES, st.sampled_from(["float32", "int64", ""]), SIZES)
ARGUMENT = st.one_of(TENSOR, PLAIN, st.lists(TENSOR, max_size=2), st.lists(st.integers(0, 9), max_size=2))
ARGUMENTS = st.one_of(st.lists(ARGUMENT, max_size=3).map(tuple),
                      st.builds(Arguments, st.lists(PLAIN, max_size=2),
                                st.dictionaries(TEXT, st.integers(0, 9), max_size=2)))
ENTRIES: dict[str, st.SearchStrategy[Any]] = {
    "names": TEXT, "threads": st.builds(ThreadInfo, INT32, INT32, TEXT, TEXT),
    "frames": st.builds(Frame, TEXT, INT32, TEXT), "inputs": ARGUMENTS,
}


@st.composite
def raw_traces(draw: st.DrawFn) -> Trace:
    """Any tables that the schema allows, in no order: what a recorder could write down."""
    pools = {name: draw(st.lists(ENTRIES[name], min_size=1, max_size=4, unique_by=repr)) for name in POOLS}
    counts = {name: draw(st.integers(0, 6)) for name in TABLES}
    chosen = {"events", *draw(st.sets(st.sampled_from(sorted(TABLES))))}
    sizes = {name: counts[name] if name in chosen else 0 for name in TABLES} | {k: len(v) for k, v in pools.items()}
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    tables = {}
    for name in TABLES:
        if name in chosen:
            tables[name] = {column.name: _column(random, name, column, counts[name], sizes) for column in TABLES[name]}
    start = draw(st.integers(-(2**40), 2**40))
    metadata = draw(st.dictionaries(TEXT, st.one_of(TEXT, st.integers(0, 2**53)), max_size=2))
    return Trace(tables, **pools, metadata=metadata, start_ns=start, end_ns=start + 7,
                 epoch_ns=draw(st.integers(0, 2**60)), dropped=draw(st.integers(0, 9)))


def _column(random: np.random.Generator, table: str, column: Column, count: int, sizes: dict[str, int]) -> np.ndarray:
    if column.refers == table:  # a tree: parents come before their children
        values = [int(random.integers(-1, row)) if row else -1 for row in range(count)]
    elif column.refers is not None:
        lowest = min(column.default, 0)
        size = sizes[column.refers]
        values = random.integers(lowest, size, count) if size > lowest else np.full(count, lowest)
        if size == 0 and lowest == 0:
            values = np.zeros(0)
    elif column.codes is not None:
        values = random.choice([int(code) for code in column.codes], count)
    elif column.name == "end_ns":
        values = random.integers(2**40, 2**41, count)
    elif column.clock:
        values = random.integers(0, 2**40, count)
    else:
        values = random.integers(np.iinfo(column.dtype).min // 4, np.iinfo(column.dtype).max // 4, count)
    return np.array(values, column.dtype)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Traces that are in order."""
    return put_in_order(draw(raw_traces().filter(_is_whole)))


def _is_whole(trace: Trace) -> bool:
    return all(len({len(column) for column in table.values()}) == 1 for table in trace.tables.values())
