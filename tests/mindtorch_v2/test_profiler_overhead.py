"""What the profiler says about its own cost, what it keeps within a limit, and that it leaves nothing behind."""

from __future__ import annotations

import gc
import json
import re
import threading
import tracemalloc

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch.describe import INPUTS
from mindtorch_v2._dispatch.observer import HOOK
from mindtorch_v2.profiler import _ExperimentalConfig, profile, record_function
from mindtorch_v2.profiler import session as session_module
from mindtorch_v2.profiler.options import Options
from mindtorch_v2.profiler.recorder import overhead
from mindtorch_v2.profiler.recorder import recorder as recorder_module
from mindtorch_v2.profiler.sources.call_limit import EXIT, CallBudget
from mtprof.store.kineto import read
from mtprof.tables.check import check
from mtprof.views.averages import averages_of

MODES = [{}, {"record_shapes": True}, {"profile_memory": True}, {"with_stack": True}, {"with_modules": True},
         {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True, "with_flops": True},
         {"experimental_config": _ExperimentalConfig(record_python_gc_info=True)},
         {"max_events": 5, "with_stack": True}]


@pytest.fixture
def uncalibrated(monkeypatch):
    monkeypatch.setattr(overhead, "_KNOWN", {})


def last_line(prof):
    return prof.key_averages().table().rstrip("\n").splitlines()[-1]


class TestCost:
    @pytest.mark.parametrize("options", MODES[:6])
    def test_events_times_costs(self, options, monkeypatch):
        costs = overhead.Costs(op=1000, scope=10_000, memory_change=100_000, python_call=1_000_000)
        monkeypatch.setattr(overhead, "costs_of", lambda _: costs)
        model = nn.Linear(2, 2)
        model(torch.ones(1, 2))  # first uses of ops are events too
        with profile(**options) as prof, record_function("mine"):
            model(torch.ones(1, 2))
        kinds = [event["kind"] for event in prof.events()]
        modules = 1 if options.get("with_modules") or options.get("with_stack") else 0
        changes, calls = len(prof.trace.optional("memory")["time_ns"]), kinds.count("python")
        ops = kinds.count("op")
        assert prof.trace.metadata["profiler_overhead_events"] == ops + 1 + modules + changes + calls
        assert prof.trace.metadata["profiler_overhead_us"] == ops + 10 * (1 + modules) + 100 * changes + 1000 * calls

    def test_measured_once_and_not_while_recording(self, uncalibrated):
        options = Options(shapes=True)
        with profile() as prof:
            torch.ones(2)
            assert overhead.costs_of(options) is None
        assert overhead._KNOWN == {}
        count = len(prof.trace)
        costs = overhead.costs_of(options)
        assert overhead.costs_of(Options(shapes=True, max_events=7)) is costs
        assert costs.op >= 0
        assert costs.scope >= 0
        assert costs.memory_change == costs.python_call == 0
        assert len(prof.trace) == count
        assert HOOK["OBSERVING"] is False
        assert gc.isenabled()

    def test_all_costs_with_all_options(self, uncalibrated):
        costs = overhead.costs_of(Options(shapes=True, memory=True, stacks=True, modules=True))
        assert costs.op >= 0
        assert costs.scope >= 0
        assert costs.python_call >= 0

    def test_a_result_that_is_asked_for_inside_another_recording_has_no_estimate(self, uncalibrated):
        with profile() as outer:
            with profile() as inner:
                torch.ones(2)
            assert "overhead" not in inner.key_averages().table()
        assert "profiler_overhead_us" not in inner.trace.metadata
        assert last_line(outer).startswith("Profiling overhead")
        assert {event.name for event in outer.events()} == {"aten::ones", "aten::empty", "aten::fill_"}

    def test_the_line_comes_after_pytorch_s(self):
        with profile() as prof:
            torch.ones(2)
        lines = prof.key_averages().table().rstrip("\n").splitlines()
        places = [next(i for i, line in enumerate(lines) if line.startswith(begin))
                  for begin in ("---", "Self CPU time total: ", "Total: ", "Profiling overhead (estimated): ")]
        assert places == sorted(places)
        assert places[-1] == len(lines) - 1
        time = r"[\d.]+(us|ms|s)"
        assert re.fullmatch(rf"Profiling overhead \(estimated\): {time}, [\d.]+ % of {time}(; recorded in Python.*)?",
                            lines[-1])
        assert "overhead" not in prof.events().table()

    def test_the_file_says_it_too(self, tmp_path):
        path = tmp_path / "trace.json"
        with profile() as prof:
            torch.ones(2)
        prof.export_chrome_trace(path)
        top = json.loads(path.read_text())
        assert top["profiler_overhead_us"] >= 0
        assert top["profiler_overhead_events"] == 3
        assert last_line(prof) == averages_of(read(path)).table().rstrip("\n").splitlines()[-1]


def test_a_recording_without_the_extension_says_so(monkeypatch):
    for native, expected in ((None, "python"), (object(), None)):
        monkeypatch.setattr(session_module, "NATIVE", native)
        with profile() as prof:
            torch.ones(1)
        assert prof.trace.metadata.get("profiler_recorder") == expected
        assert ("recorded in Python" in prof.key_averages().table()) == (expected is not None)


class TestLimit:
    def nested(self, depth):
        return self.nested(depth - 1) if depth else torch.ones(1)

    @pytest.mark.parametrize("limit", [1, 10, 35])
    def test_python_calls_are_bounded(self, limit):
        with profile(with_stack=True, max_events=limit) as prof:
            for _ in range(30):
                self.nested(2)
        trace = check(prof.trace)
        calls = [e for e in prof.events() if e.is_python_function]
        opened = len(prof.profiler._recorder.taken("calls")[0][0].base)
        assert len(calls) <= limit + opened
        assert trace.dropped >= 30 * 3 - limit + 30 * 3 - limit
        # A call that was kept ends when it ended.
        if limit > 3:
            last = max(e.time_range.end for e in prof.events() if "nested" in e.name)
            assert last < (trace.end_ns - trace.start_ns) / 1000

    def test_exits_of_what_was_kept_are_kept(self):
        budget, calls = CallBudget(), []
        budget.limit = 2
        extend = budget.extend_of(calls)
        for what in (0, 1, 2, 3, EXIT, EXIT, EXIT, 4, EXIT, EXIT):
            extend((0, None, what))
        assert calls[2::3] == [0, 1, EXIT, EXIT]
        assert budget.dropped == 3

    def test_without_a_limit_the_list_s_own_extend_is_used(self):
        calls = []
        assert CallBudget().extend_of(calls) == calls.extend


def session(options):
    with profile(**options) as prof, record_function("mine"):
        (torch.ones(4, requires_grad=True) * 2).sum().backward()
    prof.key_averages()


def test_descriptions_of_arguments_do_not_pile_up(monkeypatch):
    """Numbers that change with each step make new descriptions, which are dropped when no recording needs them."""
    gc.collect()
    monkeypatch.setattr(recorder_module, "MANY_DESCRIPTIONS", 50)
    monkeypatch.setattr(recorder_module, "HOLDING", set())  # others may hold recordings of other tests
    x = torch.ones(3)
    with profile(record_shapes=True) as kept:
        torch.pow(x, 0.125)
    largest = 0
    for i in range(30):
        with profile(record_shapes=True) as prof:
            for k in range(20):
                torch.pow(x, 1 / (1 + 20 * i + k))
        assert [e.concrete_inputs[1] for e in prof.events() if e.name == "aten::pow"] == [
            1 / (1 + 20 * i + k) for k in range(20)]
        if i == 5:  # until now somebody held a recording
            assert len(INPUTS) > 100
            assert [e.concrete_inputs[1] for e in kept.events() if e.name == "aten::pow"] == [0.125]
            del kept
        del prof
        if i > 7:
            largest = max(largest, len(INPUTS))
    assert largest < 150


@pytest.mark.parametrize("options", MODES, ids=lambda options: "+".join(options) or "plain")
def test_many_sessions_leave_nothing_behind(options):
    """Memory and threads stay flat.

    The interpreter may enlarge a table of its own meanwhile, as that of its names, whoever happens to be the one who
    needs a place in it. That is done in one of the rounds; what sessions leave behind they leave in all of them.
    """
    for _ in range(3):
        session(options)
    gc.collect()
    threads, callbacks = threading.active_count(), len(gc.callbacks)
    grown = []
    tracemalloc.start()
    try:
        session(options)
        for _ in range(3):
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(6):
                session(options)
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    # A session holds some ten kilobytes: were it kept, 6 would be far more than this.
    assert min(grown) < 20_000, f"{grown} bytes"
    assert threading.active_count() == threads
    assert len(gc.callbacks) == callbacks
