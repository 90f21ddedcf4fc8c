"""The profiler's contract, and its life cycle."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import threading
import time

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim
from mindtorch_v2.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from mtprof.export import chrome
from mtprof.tables.check import check


def names(prof):
    return [e.name for e in prof.events()]


class TestContract:
    def test_profile_collects_step_scoped_events(self):
        x, y = torch.ones(2), torch.ones(2)
        with profile() as prof:
            x + x
            prof.step()
            y * y
        events = prof.events()
        assert len(events) >= 2
        assert {e["step"] for e in events} == {0, 1}
        for key in ("name", "kind", "step", "duration_ns", "device_type"):
            assert all(e.get(key) is not None for e in events)
        assert {e["device_type"] for e in events} == {"CPU"}
        assert all(e["duration_ns"] >= 0 and e["kind"] == "op" for e in events)

    def test_forward_and_backward_ops(self):
        x = torch.ones(2, requires_grad=True)
        with profile() as prof:
            (x * x).sum().backward()
        ops = [e["name"] for e in prof.events() if e["kind"] == "op"]
        assert any("mul" in name for name in ops)
        assert any("sum" in name for name in ops)
        assert any("Backward" in name for name in ops)

    def test_forward_backward_and_optimizer_phases(self):
        model = nn.Linear(4, 2)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        with profile() as prof:
            loss = model(torch.ones(3, 4)).sum()
            loss.backward()
            optimizer.step()
        ops = [e["name"] for e in prof.events() if e["kind"] == "op"]
        assert "aten::linear" in ops
        assert "AddmmBackward0" in ops
        assert "aten::add_" in ops
        assert "Optimizer.step#SGD.step" in names(prof)

    def test_nested_scopes(self):
        with profile() as prof, record_function("outer"), record_function("inner"):
            torch.ones(1) + 1
        scopes = [e for e in prof.events() if e["kind"] == "scope"]
        assert [e["name"] for e in scopes] == ["outer", "inner"]
        assert all(e["duration_ns"] >= 0 for e in scopes)
        assert scopes[1].cpu_parent is scopes[0]

    def test_scope_is_closed_when_its_body_raises(self):
        with profile() as prof:
            with pytest.raises(ZeroDivisionError), record_function("broken"):
                _ = 1 / 0
            torch.ones(1) + 1
        (scope,) = [e for e in prof.events() if e["kind"] == "scope"]
        assert scope.name == "broken"
        assert scope.cpu_children == []

    def test_record_function_outside_a_profile_does_nothing(self):
        with record_function("nobody listens"):
            torch.ones(1)
        with profile() as prof:
            torch.ones(1)
        assert "nobody listens" not in names(prof)

    def test_key_averages_and_table(self):
        with profile() as prof:
            for _ in range(3):
                torch.ones(2) + 1
        rows = prof.key_averages()
        (add,) = [row for row in rows if row.key == "aten::add"]
        assert add.count == 3
        assert add.cpu_time_total >= add.self_cpu_time_total >= 0
        assert add.cpu_time == pytest.approx(add.cpu_time_total / 3)
        assert rows[0] is prof.key_averages()[0]
        text = rows.table(sort_by="self_cpu_time_total")
        assert text == rows.table(sort_by="self_cpu_time_total")
        for word in ("Name", "Count", "Total", "aten::add"):
            assert word in text

    def test_export_chrome_trace(self, tmp_path):
        with profile() as prof:
            torch.ones(2) + 1
        prof.export_chrome_trace(tmp_path / "trace.json")
        assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
        with gzip.open(tmp_path / "trace.json.gz") as file:
            assert json.load(file)["traceEvents"]

    def test_profiler_source_has_no_foreign_runtime(self):
        source = inspect.getsource(inspect.getmodule(profile))
        assert "mind" + "spore" not in source

    def test_averages_as_a_trace(self, tmp_path):
        with profile() as prof:
            torch.ones(2) + 1
        path = tmp_path / "averages.json"
        prof.key_averages().export_chrome_trace(str(path))
        first = path.read_bytes()
        prof.key_averages().export_chrome_trace(str(path))
        assert path.read_bytes() == first
        events = json.loads(first.decode("utf-8"))["traceEvents"]
        assert len(events) == len(prof.key_averages())
        for event in events:
            assert {"name", "ph", "ts", "dur", "pid", "tid", "cat", "args"} <= set(event)

    def test_stack_metrics(self, tmp_path):
        with profile(with_stack=True) as prof:
            torch.ones(2) + 1
        rows = prof.key_averages()
        assert rows.supported_export_stacks_metrics() == [
            "self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]
        with pytest.raises(ValueError, match="metric should be one of: "):
            prof.events().export_stacks(str(tmp_path / "s.txt"), "nonsense")
        assert rows[0].self_device_time_total == rows[0].device_time_total == rows[0].device_time == 0

    def test_metadata(self, tmp_path):
        prof = profile()
        assert prof.acc_events is False
        prof.preset_metadata_json("before", '{"a": 1}')
        with prof:
            torch.ones(1)
            prof.add_metadata("text", 'with "quotes"')
            prof.add_metadata_json("list", "[1, 2]")
            with pytest.raises(AttributeError, match="metadata 'number' must be a string"):
                prof.add_metadata("number", 1)
            with pytest.raises(ValueError, match="metadata 'broken' is not JSON"):
                prof.add_metadata_json("broken", "{1")
            with pytest.raises(ValueError, match="profiler_overhead_us in the metadata should be a number"):
                prof.add_metadata_json("profiler_overhead_us", "[]")
        prof.export_chrome_trace(tmp_path / "t.json")
        stored = json.loads((tmp_path / "t.json").read_text())
        assert (stored["before"], stored["text"], stored["list"]) == ({"a": 1}, 'with "quotes"', [1, 2])

    def test_toggle_collection(self):
        with profile() as prof:
            torch.ones(1) + 1
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            torch.ones(1) * 2
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            torch.ones(1) - 1
        assert "aten::add" in names(prof)
        assert "aten::mul" not in names(prof)
        assert "aten::sub" in names(prof)

    def test_memory_timeline_needs_its_flags(self, tmp_path):
        with profile() as prof:
            torch.ones(1)
        with pytest.raises(ValueError, match="record_shapes=True, profile_memory=True, with_stack=True required"):
            prof.export_memory_timeline(str(tmp_path / "m.html"))


class TestLifeCycle:
    @pytest.mark.parametrize(("options", "expected"), [
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, "nwrsnwrsnn"),
        ({"wait": 0, "warmup": 0, "active": 1}, "ssssssssss"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 2}, "nnnwrsnnnn"),
        ({"wait": 1, "warmup": 0, "active": 1, "repeat": 2, "skip_first": 1, "skip_first_wait": 1}, "nsnsnnnnnn"),
    ])
    @pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
    def test_schedules(self, options, expected):
        letter = {"NONE": "n", "WARMUP": "w", "RECORD": "r", "RECORD_AND_SAVE": "s"}
        plan = schedule(**options)
        assert "".join(letter[plan(i).name] for i in range(10)) == expected

    def test_bad_schedule(self):
        with pytest.raises(AssertionError, match=r"Invalid profiler schedule arguments. Got wait=-1"):
            schedule(wait=-1, warmup=0, active=1)

    def test_scheduled_cycles(self):
        ready = []
        with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                     on_trace_ready=lambda p: ready.append((p.step_num, [e.trace_name for e in p.events()]))) as prof:
            for _ in range(8):
                torch.ones(1) + 1
                prof.step()
        assert [step for step, _ in ready] == [4, 8]
        for (_, found), steps in zip(ready, ((2, 3), (6, 7))):
            assert found.count("aten::add") == 2
            assert [n for n in found if n.startswith("ProfilerStep")] == [f"ProfilerStep#{s}" for s in steps]

    def test_acc_events(self):
        with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), acc_events=True) as prof:
            for _ in range(4):
                torch.ones(1) + 1
                prof.step()
        assert names(prof).count("aten::add") == 2
        assert {r.key: r.count for r in prof.key_averages()}["aten::add"] == 2

    @pytest.mark.parametrize(("plan", "text"), [
        ([ProfilerAction.WARMUP, ProfilerAction.NONE], "WARMUP followed by NONE"),
        ([ProfilerAction.RECORD, ProfilerAction.NONE], "RECORD followed by NONE"),
        ([ProfilerAction.RECORD, ProfilerAction.WARMUP], "RECORD followed by WARMUP"),
    ])
    def test_schedules_that_break_off_warn(self, plan, text):
        prof = profile(schedule=lambda step: plan[min(step, len(plan) - 1)])
        prof.start()
        with pytest.warns(UserWarning, match=text):
            prof.step()
        prof.stop()

    @pytest.mark.parametrize("ask", [
        lambda p: p.events(), lambda p: p.key_averages(), lambda p: p.export_chrome_trace("x.json"),
        lambda p: p.export_stacks("x.txt"),
    ])
    def test_results_of_a_profile_that_never_ran(self, ask):
        with pytest.raises(AssertionError, match="Profiler must be initialized before"):
            ask(profile())

    def test_results_of_a_schedule_that_never_recorded(self):
        with profile(schedule=schedule(wait=5, warmup=1, active=1)) as prof:
            prof.step()
        with pytest.raises(RuntimeError, match=r"did not reach a recording step in 1 calls of step\(\)"):
            prof.events()

    def test_results_while_recording(self):
        with profile() as prof, pytest.raises(RuntimeError, match="didn't finish running"):
            prof.events()

    def test_reuse(self):
        prof = profile()
        for _ in range(2):
            with prof:
                torch.ones(1) + 1
            assert names(prof).count("aten::add") == 1

    def test_callback_that_raises(self):
        prof = profile(on_trace_ready=lambda p: 1 / 0)
        with pytest.raises(ZeroDivisionError), prof:
            torch.ones(1) + 1
        assert "aten::add" in names(prof)
        with profile() as second:
            torch.ones(1)
        assert names(second)

    def test_body_that_raises(self):
        prof = profile()

        def body():
            torch.ones(1) + 1
            raise KeyError("mine")

        with pytest.raises(KeyError), prof:
            body()
        assert "aten::add" in names(prof)

    def test_profiler_in_a_profiler(self):
        with profile() as outer:
            torch.ones(1) + 1
            with profile() as inner:
                torch.ones(1) * 2
            torch.ones(1) - 1
        assert [e.name for e in inner.events() if e.cpu_parent is None] == ["aten::ones", "aten::mul"]
        assert {"aten::add", "aten::mul", "aten::sub"} <= set(names(outer))
        assert "aten::add" not in names(inner)

    def test_export_to_an_impossible_place_keeps_the_old_file(self, tmp_path, monkeypatch):
        with profile() as prof:
            torch.ones(1)
        with pytest.raises(OSError, match="nowhere"):
            prof.export_chrome_trace(tmp_path / "nowhere" / "t.json")
        prof.export_chrome_trace(tmp_path / "t.json")
        before = (tmp_path / "t.json").read_bytes()
        monkeypatch.setattr(chrome, "_chunks", lambda *args: (1 / 0 for _ in range(2)))
        with pytest.raises(ZeroDivisionError):
            prof.export_chrome_trace(tmp_path / "t.json")
        assert (tmp_path / "t.json").read_bytes() == before
        assert os.listdir(tmp_path) == ["t.json"]

    def test_activities(self):
        with pytest.raises(AssertionError, match="No valid profiler activities found"):
            profile(activities=[])
        with profile(activities=[ProfilerActivity.CPU]) as prof:
            torch.ones(1)
        assert names(prof)

    def test_activity_filters(self):
        with profile(activities=[{ProfilerActivity.CPU: []}]) as prof:
            torch.ones(1)
        assert names(prof)
        with pytest.raises(RuntimeError, match="Unknown or non-member activity type name: 'cpu_op'"):
            profile(activities=[{ProfilerActivity.CPU: ["cpu_op"]}]).start()

    def test_max_events(self):
        with profile(max_events=10) as prof:
            for _ in range(50):
                torch.ones(1) + torch.ones(1)
        assert len(prof.events()) == 10
        assert prof.trace.dropped == 340
        assert "Dropped: 340 events" in prof.key_averages().table()
        with pytest.raises(ValueError, match="max_events must be positive"), profile(max_events=0):
            pass


class TestThreads:
    def test_all_threads_are_recorded(self):
        def work():
            torch.ones(2) * 3

        before = threading.Event()
        go = threading.Event()

        def early():
            torch.ones(1)
            before.set()
            go.wait(5)
            work()

        started_before = threading.Thread(target=early)
        started_before.start()
        before.wait(5)
        with profile() as prof:
            go.set()
            started_before.join()
            later = threading.Thread(target=work)
            later.start()
            later.join()
            torch.ones(1) + 1
        multiplications = [e for e in prof.events() if e.name == "aten::mul"]
        assert len({e.thread for e in multiplications}) == 2
        assert all(e.cpu_parent is None for e in multiplications)

    def test_thread_that_outlives_the_recording(self):
        stop = threading.Event()

        def work():
            while not stop.is_set():
                torch.ones(1) + 1

        thread = threading.Thread(target=work)
        thread.start()
        try:
            with profile() as prof:
                time.sleep(0.02)
        finally:
            stop.set()
            thread.join()
        assert "aten::add" in names(prof)
        check(prof.trace)

    def test_scope_closed_on_another_thread(self):
        scope = record_function("handed over")
        with profile() as prof:
            scope.__enter__()
            thread = threading.Thread(target=lambda: scope.__exit__(None, None, None))
            thread.start()
            thread.join()
        assert "handed over" in names(prof)
        check(prof.trace)

    def test_step_from_another_thread(self):
        with profile() as prof:
            torch.ones(1) + 1
            thread = threading.Thread(target=prof.step)
            thread.start()
            thread.join()
            torch.ones(1) * 1
        assert {e.name: e["step"] for e in prof.events() if e.name != "aten::ones"}["aten::mul"] == 1

    def test_generator_suspended_inside_a_scope(self):
        def numbers():
            with record_function("suspended"):
                yield torch.ones(1) + 1
                yield torch.ones(1) * 2

        with profile() as prof:
            generator = numbers()
            with record_function("outer"):
                next(generator)
            next(generator)
            list(generator)
        check(prof.trace)
        assert all(row.self_cpu_time_total >= 0 for row in prof.key_averages())

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_forked_child_is_silent(self):
        with profile() as prof:
            torch.ones(1) + 1
            pid = os.fork()
            if pid == 0:
                torch.ones(1) * 2
                os._exit(0 if not prof.profiler._recorder.active else 1)
            assert os.waitpid(pid, 0)[1] == 0
            torch.ones(1) - 1
        assert "aten::sub" in names(prof)
        assert "aten::mul" not in names(prof)


class TestInputs:
    def test_shapes_dtypes_and_values(self):
        x = torch.ones(2, 3)
        with profile(record_shapes=True) as prof:
            torch.add(x, torch.ones(3, dtype=torch.float64), alpha=2)
            x.t().sum(0, keepdim=True)
        add = next(e for e in prof.events() if e.name == "aten::add")
        assert add.input_shapes == [[2, 3], [3], []]
        assert add.concrete_inputs == [None, None, 2]
        total = next(e for e in prof.events() if e.name == "aten::sum")
        assert total.input_shapes[0] == [3, 2]
        assert total.structured_input_strides[0] == [1, 3]

    def test_grouping_by_shape(self):
        with profile(record_shapes=True) as prof:
            for n in (2, 2, 3):
                torch.ones(n) * torch.ones(n)
        rows = [r for r in prof.key_averages(group_by_input_shape=True) if r.key == "aten::mul"]
        assert sorted((r.count, str(r.input_shapes)) for r in rows) == [(1, "[[3], [3]]"), (2, "[[2], [2]]")]

    def test_flops(self):
        with profile(with_flops=True) as prof:
            torch.ones(2, 3) @ torch.ones(3, 4)
        rows = {r.key: r.flops for r in prof.key_averages()}
        assert rows["aten::mm"] == 2 * 2 * 3 * 4

    def test_nothing_is_kept_without_record_shapes(self):
        with profile() as prof:
            torch.ones(2) + 1
        assert all(e.input_shapes in ([], None) for e in prof.events())


def test_self_times_add_up():
    model = nn.Linear(4, 4)
    with profile() as prof, record_function("all"):
        for _ in range(5):
            model(torch.ones(2, 4)).sum().backward()
    trace = check(prof.trace)
    own = trace.self_ns()
    assert (own >= 0).all()
    assert own.sum() == next(e for e in prof.events() if e.name == "all")["duration_ns"]


def test_no_profiler_no_allocation():
    import tracemalloc

    x, y = torch.ones(2), torch.ones(2)
    torch.add(x, y)
    tracemalloc.start()
    grown = []
    for _ in range(4):
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            torch.add(x, y)
        grown.append(tracemalloc.get_traced_memory()[0] - before)
    tracemalloc.stop()
    assert min(grown) < 2000, "something else may allocate now and then, but not each time"
