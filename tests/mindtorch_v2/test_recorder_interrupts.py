"""Ctrl-C in a recording: it is never lost, never turned into another error, and ends the recording."""

from __future__ import annotations

import _thread
import gc
import sys
import weakref
from collections import defaultdict
from functools import partial

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.native import NATIVE
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.sources.holders import Holders
from mindtorch_v2.profiler.sources.modules import Modules
from mindtorch_v2.profiler.sources.scopes import Scopes
from mtprof.devices import DeviceType
from mtprof.schema import Direction, Kind, Role
from mtprof.tables.distinct import distinct


class Thing:
    """Something that can be watched."""


class Watch(weakref.ref):
    """Interrupts from C when the thing dies: Python raises the error at the next function that begins."""

    __hash__ = object.__hash__

    def __new__(cls, thing):
        return super().__new__(cls, thing, defaultdict(_thread.interrupt_main).__getitem__)

    def __init__(self, thing):
        super().__init__(thing, None)


@pytest.mark.parametrize("kind", [profile, torch.autograd.profiler.profile])
def test_an_interrupt_where_the_block_ends(kind):
    things = [Thing()]
    reference = Watch(things[0])
    interrupted = False
    prof = kind()
    try:
        with prof:
            torch.ones(2)
            del things[0]
    except KeyboardInterrupt:
        interrupted = True
    assert interrupted
    assert reference() is None
    assert not torch.autograd._profiler_enabled()


@pytest.mark.parametrize("kind", [profile, torch.autograd.profiler.profile])
def test_an_interrupt_where_the_block_begins(kind):
    """While `__enter__` returns, after the end of its own `try`."""
    prof = kind()

    def note(frame, event, argument):
        if event == "return" and frame.f_code.co_name == "__enter__" and frame.f_locals.get("self") is prof:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(note)
    try:
        with pytest.raises(KeyboardInterrupt), prof:
            pytest.fail("was not interrupted")
    finally:
        sys.setprofile(None)
    assert not torch.autograd._profiler_enabled()


def test_looking_at_the_end_does_not_end():
    prof = profile()
    with prof:
        torch.ones(2)
        assert hasattr(prof, "__exit__")
        torch.zeros(2)
    assert {"aten::ones", "aten::zeros"} <= {event.name for event in prof.events()}


def test_the_end_is_found_in_the_class():
    prof = profile()
    prof.__enter__()
    torch.ones(2)
    profile.__exit__(prof, None, None, None)
    assert any(event.name == "aten::ones" for event in prof.events())


def test_a_profiler_that_failed_records_again():
    def fails(prof):
        raise ValueError("on purpose")

    prof = profile(on_trace_ready=fails)
    with pytest.raises(ValueError, match="on purpose"), prof:
        torch.ones(2)
    prof.on_trace_ready = None
    with prof:
        torch.zeros(2)
    assert {event.name for event in prof.events()} >= {"aten::zeros"}
    prof = profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1), on_trace_ready=fails)
    prof.start()
    prof.step()
    with pytest.raises(ValueError, match="on purpose"):
        prof.step()
    prof.stop()
    prof.on_trace_ready = None
    prof.start()
    prof.step()
    torch.zeros(3)
    prof.stop()
    assert {event.name for event in prof.events()} >= {"aten::zeros"}


def calls_during(work):
    """The Python functions that begin while something runs: where an interrupt can be raised."""
    found = []

    def note(frame, event, argument):
        if event == "call":
            found.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("code", [Kind.OP, Direction.PEER, Role.GRADIENT, DeviceType.CPU])
def test_comparing_a_column_runs_no_python(code):
    """NumPy drops errors of what it calls there."""
    column = np.zeros(3, np.uint8)
    operation = partial(np.equal, column, code)
    assert calls_during(operation) == []
    assert calls_during(partial(column.__lt__, code)) == []


def test_a_profiler_that_has_ended_dies_without_python():
    """Python drops errors of what it calls there."""
    prof = profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1))
    with prof:
        torch.ones(2)
        prof.step()
    held = [prof, prof.profiler]
    del prof
    gc.collect()
    assert calls_during(held.clear) == []


def test_distinct_combinations():
    chance = np.random.default_rng(0)
    for rows in (0, 1, 5, 1000):
        for high in (2, 1 << 40):
            columns = chance.integers(-high, high, (3, rows))
            which, first = distinct(columns)
            found, index, inverse = np.unique(columns, axis=1, return_index=True, return_inverse=True)
            assert columns[:, first].tolist() == found.tolist()
            assert first.tolist() == index.tolist()
            assert which.tolist() == inverse.reshape(-1).tolist()


def test_a_collection_in_the_middle_of_the_end(monkeypatch):
    """Code that runs then, in other threads too, may be a module's first call or begin a scope."""
    kept = []

    def collecting(phase, info):
        kept.append(torch.nn.Identity())
        kept[-1](1)
        kept.append(record_function("mine"))
        kept[-1].__enter__()

    def take(source, mark, stretch, before):
        gc.callbacks.append(collecting)
        gc.set_threshold(200, 1000, 1000)
        try:
            return before(source, mark, stretch)
        finally:
            gc.set_threshold(*threshold)
            gc.callbacks.remove(collecting)

    threshold = gc.get_threshold()
    for source in (Holders, Modules, Scopes):
        before = source.take
        monkeypatch.setattr(source, "take", lambda *given, before=before: take(*given, before))
    with profile(with_stack=True) as prof:
        for _ in range(3):
            torch.nn.Sequential(*[torch.nn.Identity() for _ in range(1000)])(1)
        for _ in range(2500):  # more than Python has tuples in store
            kept.append(record_function("mine"))
            kept[-1].__enter__()
    assert [prof.trace.names[name] for name in prof.trace.events["name"].tolist()].count("mine") >= 2500


@pytest.mark.skipif(NATIVE is None, reason="the C extension is not used")
def test_rows_that_the_garbage_collector_frees():
    """A profiler that dies while columns are made ends its recording: they are whole or empty, never left unfilled."""
    def taken(threshold):
        gc.collect()  # which also forgets the tuples that Python keeps for later: the next one is made
        log = NATIVE.MemoryLog()
        arrays = [np.zeros(32) for _ in range(100)]
        for array in arrays:
            log.allocated(array)

        class Ends:
            def __del__(self):
                log.rest()

        one = Ends()
        one.itself = one
        del one
        gc.set_threshold(threshold)
        try:
            return log.since(0)[2].tolist()
        finally:
            gc.set_threshold(*before)

    before = gc.get_threshold()
    for threshold in (1, 10):
        assert taken(threshold) in ([], [256] * 100)
