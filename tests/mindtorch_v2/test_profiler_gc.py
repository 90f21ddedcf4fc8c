"""Pauses of Python's garbage collector as events, and recordings for which only the file is needed."""

from __future__ import annotations

import functools
import gc
import json
import os
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import _ExperimentalConfig, profile, record_function
from mindtorch_v2.profiler.sources.garbage import Garbage
from mtprof.analysis.health import examine
from mtprof.schema import KINETO_TABLES, Kind
from mtprof.store.kineto import read
from mtprof.tables.check import check
from mtprof.tables.compare import assert_traces_equal

assert_same_file = functools.partial(assert_traces_equal, tables=KINETO_TABLES)
PAUSES = _ExperimentalConfig(record_python_gc_info=True)


@pytest.fixture(autouse=True)
def callbacks_are_as_before():
    before = list(gc.callbacks)
    was_enabled = gc.isenabled()
    gc.disable()  # only what a test collects is seen
    yield
    if was_enabled:
        gc.enable()
    assert gc.callbacks == before


def pauses(prof):
    return [event for event in prof.events() if event.name == "Python GC"]


def test_collections_say_what_they_found(tmp_path):
    with profile(experimental_config=PAUSES) as prof:
        torch.ones(2)
        ring = []
        ring.append(ring)
        del ring
        gc.collect(0)
        gc.collect()
    trace = prof.trace
    found = trace.collections
    assert found["generation"].tolist() == [0, 2]
    assert found["collected"][0] >= 1
    assert (trace.events["kind"][found["row"]] == Kind.GC).all()
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    first, _ = [event["args"] for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"]
                if event["name"] == "Python GC"]
    assert first["collected"] == found["collected"][0]


def test_a_recording_without_collections_says_whether_it_looked_for_them():
    for config, looked in ((PAUSES, True), (None, False)):
        with profile(experimental_config=config) as prof:
            torch.ones(2)
        assert prof.trace.has("collections") is looked


def test_each_collection_is_an_event():
    with profile(experimental_config=PAUSES) as prof:
        torch.ones(2)
        gc.collect(0)
        with record_function("mine"):
            gc.collect()
        torch.ones(2)
    first, second = pauses(prof)
    assert first.cpu_parent is None
    assert second.cpu_parent.name == "mine"
    assert second.cpu_parent.self_cpu_time_total < second.cpu_parent.cpu_time_total - 0.99 * second.cpu_time_total
    assert second.cpu_time_total == second.self_cpu_time_total > 0
    assert second["kind"] == "gc"
    assert second.activity_type == "python_function"
    assert not second.is_user_annotation
    assert not second.is_python_function
    assert second.id == 0
    assert second.scope == 0
    (row,) = [row for row in prof.key_averages() if row.key == "Python GC"]
    assert row.count == 2
    check(prof.trace)


def test_not_without_being_asked():
    with profile() as prof:
        gc.collect()
    assert not pauses(prof)
    assert len(gc.callbacks) == len(set(map(id, gc.callbacks)))


def test_only_the_recorder_that_asked_and_only_its_time():
    gc.collect()
    with profile() as outer:
        gc.collect()
        with profile(experimental_config=PAUSES) as inner:
            gc.collect()
            with profile(experimental_config=PAUSES) as innermost:
                gc.collect()
        gc.collect()
    assert [len(pauses(prof)) for prof in (outer, inner, innermost)] == [0, 2, 1]


@pytest.mark.parametrize("stacks", [False, True])
def test_a_pause_is_on_the_thread_that_collects(stacks):
    def collect():
        torch.ones(1)
        gc.collect()

    with profile(experimental_config=PAUSES, with_stack=stacks) as prof:
        thread = threading.Thread(target=collect, name="collector")
        thread.start()
        thread.join()
        idle = threading.Thread(target=gc.collect, name="no ops here")
        idle.start()
        idle.join()
        gc.collect()
    threads = [prof.trace.threads[event.thread - 1] for event in pauses(prof)]
    assert threads[0].name == "collector"
    assert len({info.tid for info in threads}) == 3
    assert {info.pid for info in threads} == {os.getpid()}


def test_a_collection_inside_an_op():
    class Collects(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            gc.collect()
            return grad * 2

    x = torch.ones(3, requires_grad=True)
    with profile(experimental_config=PAUSES) as prof:
        Collects.apply(x).sum().backward()
    (pause,) = pauses(prof)
    assert pause.cpu_parent is not None
    assert "Collects" in pause.cpu_parent.name


def test_the_file(tmp_path):
    path = tmp_path / "trace.json"
    with profile(experimental_config=PAUSES, with_stack=True) as prof:
        torch.ones(2)
        gc.collect()
    prof.export_chrome_trace(path)
    (event,) = [e for e in json.loads(path.read_text())["traceEvents"] if e["name"] == "Python GC"]
    assert event["ph"] == "X"
    assert event["cat"] == "python_function"
    assert set(event["args"]) - {"collected"} == {"Ev Idx", "generation"}  # where something was
    back = read(path)
    assert (back.events["kind"] == Kind.GC).sum() == 1
    assert_same_file(back, prof.trace)


def test_the_collector_goes_on_if_a_program_clears_its_callbacks():
    kept = list(gc.callbacks)
    with profile(experimental_config=PAUSES):
        gc.callbacks.clear()
    gc.callbacks[:] = kept


class TestTraceOnly:
    def test_events_are_refused_and_the_file_is_written(self, tmp_path):
        with profile(experimental_config=_ExperimentalConfig(trace_only=True)) as prof:
            torch.ones(2)
        for ask in (prof.events, prof.key_averages, prof.profiler.table, prof.profiler.total_average):
            with pytest.raises(RuntimeError, match="not available when trace_only=True"):
                ask()
        prof.export_chrome_trace(tmp_path / "trace.json")
        assert "aten::ones" in (tmp_path / "trace.json").read_text()

    def test_stacks_need_events(self):
        config = _ExperimentalConfig(trace_only=True)
        with pytest.warns(UserWarning, match="Disabling trace_only") as seen:
            prof = profile(experimental_config=config, with_stack=True)
        assert len(seen) == 1
        with prof:  # does not warn again: warnings are errors here
            torch.ones(2)
        assert prof.events()
        assert config.trace_only

    def test_cycles(self):
        plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
        ready = []
        with profile(experimental_config=_ExperimentalConfig(trace_only=True), schedule=plan, acc_events=True,
                     on_trace_ready=ready.append) as prof:
            for _ in range(4):
                torch.ones(2)
                prof.step()
        assert len(ready) == 2


def test_collections_of_stopping_are_no_part_of_the_recording(monkeypatch):
    take = Garbage.take

    def collecting(self, mark, stretch):
        gc.collect(0)
        return take(self, mark, stretch)

    monkeypatch.setattr(Garbage, "take", collecting)
    with profile(experimental_config=PAUSES) as prof:
        torch.ones(2)
        gc.collect(0)
    assert len(pauses(prof)) == 1
    assert examine(prof.trace) == []
