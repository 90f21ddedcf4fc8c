"""Traces made by hand, and what users see of them: events, averages, the table."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from length import examples
from mindtorch_v2.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, Kernel
from mtprof.builder import TraceBuilder
from mtprof.devices import DeviceType
from mtprof.schema import Kind
from mtprof.tables.check import check
from mtprof.trace import Frame, TensorInput, ThreadInfo, Trace
from mtprof.views.averages import averages_of
from mtprof.views.trace_events import events_of

ORIGIN = 1_000_000
MATRIX = TensorInput((2, 3), "float32", (3, 1))


class Script:
    """Writes a trace with times in microseconds after its start."""

    def __init__(self, threads: int = 1) -> None:
        self.build = TraceBuilder()
        for number in range(threads):
            self.build.thread(ThreadInfo(pid=100, tid=100 + number))

    def add(self, name: str, start: float, end: float, kind: Kind = Kind.OP, thread: int = 0, **more: Any) -> Script:
        self.build.add(name=name, kind=kind, start_ns=ORIGIN + round(start * 1000), end_ns=ORIGIN + round(end * 1000),
                       thread=thread, **more)
        return self

    def memory(self, time: float, size: int, device: int = 0, thread: int = 0) -> Script:
        self.build.add_row("memory", time_ns=ORIGIN + round(time * 1000), size_bytes=size, device=device, thread=thread)
        return self

    def trace(self, **facts: Any) -> Trace:
        return check(self.build.finish(start_ns=ORIGIN, **facts))


def training() -> Trace:
    """A step with a forward, a backward and memory inside and outside ops."""
    return (
        Script()
        .add("ProfilerStep#4", 0, 100, Kind.STEP, step=4)
        .add("forward", 5, 50, Kind.SCOPE, step=4)
        .add("aten::linear", 10, 40, inputs=(MATRIX, [MATRIX, MATRIX], 2.5, None), sequence=7, step=4,
             stack=[Frame("model.py", 3, "forward"), Frame("train.py", 9, "main")])
        .add("aten::addmm", 15, 35, flops=36, sequence=7, step=4, module="net.0",
             stack=[Frame("model.py", 3, "forward"), Frame("train.py", 9, "main")])
        .add("autograd::engine::evaluate_function: AddmmBackward0", 60, 80, Kind.BACKWARD, sequence=7, step=4)
        .add("AddmmBackward0", 62, 78, Kind.BACKWARD_FUNCTION, sequence=7, step=4)
        .add("aten::mm", 65, 75, flops=24, step=4, stack=[Frame("engine.py", 1, "run")])
        .add("ProfilerStep#5", 110, 130, Kind.STEP, step=5)
        .add("aten::mm", 112.5, 120, flops=24, step=5)
        .memory(20, 512).memory(36, 64).memory(70, -100).memory(105, 4096)
        .trace()
    )


def test_events_come_by_start_with_the_attributes_of_pytorch() -> None:
    events = events_of(training(), profile_memory=True)
    assert [(e.id, e.name, e.time_range.start, e.cpu_time_total, e.self_cpu_time_total) for e in events] == [
        (1, "ProfilerStep*", 0.0, 100.0, 35.0),
        (2, "forward", 5.0, 45.0, 15.0),
        (3, "aten::linear", 10.0, 30.0, 10.0),
        (4, "aten::addmm", 15.0, 20.0, 20.0),
        (5, "autograd::engine::evaluate_function: AddmmBackward0", 60.0, 20.0, 4.0),
        (6, "AddmmBackward0", 62.0, 16.0, 6.0),
        (7, "aten::mm", 65.0, 10.0, 10.0),
        (10, "[memory]", 105.0, 0.0, 0.0),
        (8, "ProfilerStep*", 110.0, 20.0, 12.5),
        (9, "aten::mm", 112.5, 7.5, 7.5),
    ]
    step, scope, linear, addmm, evaluate, backward, _, memory, *_ = events
    assert [e.trace_name for e in (step, linear, memory)] == ["ProfilerStep#4", "aten::linear", None]
    assert [e.cpu_memory_usage for e in events] == [476, 576, 576, 512, -100, -100, -100, 4096, 0, 0]
    assert [e.self_cpu_memory_usage for e in events] == [0, 0, 64, 512, 0, 0, -100, 4096, 0, 0]
    assert linear.cpu_parent is scope
    assert scope.cpu_parent is step
    assert linear.cpu_children == [addmm]
    assert memory.cpu_parent is None
    assert (linear.thread, linear.fwd_thread, evaluate.fwd_thread, backward.fwd_thread, memory.fwd_thread) == (
        1, 0, 1, 1, 1)
    assert linear.input_shapes == [[2, 3], [], [], []]
    assert linear.structured_input_shapes == [[2, 3], [[2, 3], [2, 3]], [], []]
    assert linear.structured_input_strides == [[3, 1], [[3, 1], [3, 1]], [], []]
    assert linear.concrete_inputs == [None, None, 2.5, None]
    assert linear.input_dtypes == ["float", "TensorList", "Scalar", ""]
    assert [e.scope for e in (step, scope, linear, evaluate, backward)] == [7, 7, 0, 0, 1]
    assert [e.is_user_annotation for e in (step, scope, linear)] == [True, True, False]
    assert [e.activity_type for e in (step, scope, linear, memory)] == [
        "user_annotation", "user_annotation", "cpu_op", None]
    assert (linear.device_index, linear.device_resource_id) == (100, 100)
    assert [e.flops for e in (linear, addmm, memory)] == [0, 36, None]


def test_what_runs_in_a_backward_function_has_the_stack_of_its_forward_op() -> None:
    events = {e.name: e for e in events_of(training()) if e.name != "aten::mm" or e.id == 7}
    forward = ["model.py(3): forward", "train.py(9): main"]
    assert events["aten::linear"].stack == forward
    assert events["AddmmBackward0"].stack == forward
    assert events["aten::mm"].stack == forward
    assert events["autograd::engine::evaluate_function: AddmmBackward0"].stack == []


def test_an_op_inside_a_backward_function_is_no_place_in_the_users_program() -> None:
    engine = [Frame("engine.py", 1, "run")]
    trace = (
        Script()
        .add("MulBackward0", 0, 10, Kind.BACKWARD_FUNCTION, sequence=1)
        .add("aten::mul", 2, 8, sequence=5, stack=engine)
        .add("MulBackward0", 20, 30, Kind.BACKWARD_FUNCTION, sequence=5)
        .trace()
    )
    events = events_of(trace)
    assert [e.stack for e in events] == [[], [], []]
    assert [e.fwd_thread for e in events] == [0, 0, 1]


def test_arrows_go_from_the_last_forward_op_to_the_backward_function() -> None:
    flows = {e.name: (e.flow_id, e.flow_type, e.flow_start) for e in events_of(training()) if e.flow_id}
    assert flows == {"aten::addmm": (1, 1, True), "AddmmBackward0": (1, 1, False)}


def test_events_read_like_mappings() -> None:
    events = events_of(training(), profile_memory=True)
    assert [(e["name"], e["kind"], e["step"]) for e in events] == [
        ("ProfilerStep*", "step", 4), ("forward", "scope", 4), ("aten::linear", "op", 4), ("aten::addmm", "op", 4),
        ("autograd::engine::evaluate_function: AddmmBackward0", "op", 4), ("AddmmBackward0", "op", 4),
        ("aten::mm", "op", 4), ("[memory]", "memory", 4), ("ProfilerStep*", "step", 5), ("aten::mm", "op", 5)]
    last = events[-1]
    assert dict(last) == {
        "name": "aten::mm", "kind": "op", "step": 5, "start_ns": 112500, "end_ns": 120000, "duration_ns": 7500,
        "device_type": "CPU", "device_index": 100, "thread": 1, "module": None}
    assert events[3]["module"] == "net.0"
    assert "step" in last
    assert "nonsense" not in last
    assert last.get("nonsense", 3) == 3
    assert last.get("kind") == "op"
    assert list(last) == last.keys() == [key for key, _ in last.items()]
    with pytest.raises(KeyError, match="nonsense"):
        last["nonsense"]


@pytest.mark.parametrize(("made", "kind"), [
    ({}, "op"), ({"is_user_annotation": True}, "scope"),
    ({"is_user_annotation": True, "name": "ProfilerStep*"}, "step"),
    ({"is_python_function": True}, "python"), ({"device_type": DeviceType.PrivateUse1}, "kernel"),
    ({"name": "[memory]"}, "memory"),
])
def test_events_made_by_hand_know_their_kind(made: dict[str, Any], kind: str) -> None:
    event = FunctionEvent(**{"id": 1, "name": "x", "thread": 1, "start_us": 1, "end_us": 2.5, **made})
    assert event["kind"] == kind
    assert event["duration_ns"] == 1500
    assert event["step"] == 0
    assert event["device_type"] == ("NPU" if kind == "kernel" else "CPU")


def test_bookkeeping_and_repetitions_are_left_out_and_their_insides_move_up() -> None:
    trace = (
        Script()
        .add("a", 0, 100).add("aten::is_leaf", 1, 50).add("b", 2, 40).add("b", 3, 30).add("b", 4, 20).add("c", 5, 6)
        .add("b", 7, 8).add("d", 60, 70).add("d", 61, 65).add("e", 62, 64)
        .memory(10, 8).memory(45, 16).trace()
    )
    events = events_of(trace, profile_memory=True)
    assert [(e.name, e.self_cpu_time_total, e.self_cpu_memory_usage, e.cpu_parent and e.cpu_parent.name)
            for e in events] == [
        ("a", 52.0, 16, None), ("b", 36.0, 8, "a"), ("c", 1.0, 0, "b"), ("b", 1.0, 0, "b"), ("d", 8.0, 0, "a"),
        ("e", 2.0, 0, "d")]
    assert [e.id for e in events] == [1, 3, 6, 7, 8, 10]  # ids are those of the recording


def device_trace() -> Trace:
    """Work on an NPU, tied to an op through a runtime call or directly."""
    return (
        Script(threads=2)
        .add("aten::linear", 0, 100)
        .add("aten::mm", 10, 40, correlation=0)
        .add("aclrtLaunch", 20, 30, Kind.LAUNCH, correlation=5)
        .add("aten::add", 50, 60, correlation=6)
        .add("gemm", 50, 120, Kind.KERNEL, thread=1, device=20, device_index=3, correlation=5)
        .add("add", 130, 134.5, Kind.KERNEL, thread=1, device=20, device_index=3, correlation=6)
        .add("lost", 140, 141, Kind.KERNEL, thread=1, device=20, device_index=3, correlation=99)
        .memory(15, 1024, device=20).memory(55, 7).trace()
    )


def test_device_work_belongs_to_the_op_that_launched_it() -> None:
    events = events_of(device_trace(), use_device="npu", profile_memory=True)
    by_name = {e.name: e for e in events}
    assert {e.name: (e.self_device_time_total, e.device_time_total) for e in events} == {
        "aten::linear": (0.0, 74.5), "aten::mm": (70.0, 70.0), "aclrtLaunch": (0.0, 0.0), "aten::add": (4.5, 4.5),
        "gemm": (70.0, 70.0), "add": (4.5, 4.5), "lost": (1.0, 1.0)}
    assert by_name["aten::mm"].kernels == [Kernel("gemm", 3, 70.0)]
    assert by_name["aten::linear"].kernels == []
    # Reading the parts does not change the sums.
    assert by_name["aten::linear"].cpu_children
    assert by_name["aten::linear"].device_time_total == 74.5
    assert (by_name["aten::mm"].id, by_name["gemm"].id) == (2, 5)
    assert [by_name[name].linked_correlation_id for name in ("gemm", "aclrtLaunch", "add", "lost", "aten::mm")] == [
        2, 2, 3, 0, 0]
    assert [by_name[name].external_id for name in ("gemm", "aten::mm", "lost")] == [2, 2, 0]
    assert by_name["gemm"].device_type == "NPU"
    assert by_name["gemm"]["device_type"] == "NPU"
    assert by_name["gemm"]["kind"] == "kernel"
    assert (by_name["gemm"].device_index, by_name["gemm"].cpu_time_total, by_name["gemm"].cpu_parent) == (3, 0, None)
    assert (by_name["aten::linear"].device_memory_usage, by_name["aten::mm"].self_device_memory_usage) == (1024, 1024)
    assert by_name["aten::linear"].cpu_memory_usage == 7
    rows = averages_of(device_trace(), use_device="npu", profile_memory=True)
    table = rows.table(sort_by="npu_time_total").splitlines()
    assert "Self NPU %" in table[1]
    assert "NPU Mem" in table[1]
    assert table[-2] == "Self NPU time total: 75.500us"
    assert [line.split()[0] for line in table[3:6]] == ["aten::linear", "aten::mm", "gemm"]


def test_without_a_device_to_report_device_times_are_zero() -> None:
    assert {e.device_time_total for e in events_of(device_trace())} == {0}
    assert "NPU" not in averages_of(device_trace()).table()


def test_averages_are_these_rows() -> None:
    rows = averages_of(training(), profile_memory=True, with_flops=True)
    assert [(r.key, r.count, r.cpu_time_total, r.self_cpu_time_total, r.cpu_time, r.cpu_memory_usage,
             r.self_cpu_memory_usage, r.flops) for r in rows] == [
        ("ProfilerStep*", 2, 120.0, 47.5, 60.0, 476, 0, 0),
        ("forward", 1, 45.0, 15.0, 45.0, 576, 0, 0),
        ("aten::linear", 1, 30.0, 10.0, 30.0, 576, 64, 0),
        ("aten::addmm", 1, 20.0, 20.0, 20.0, 512, 512, 36),
        ("autograd::engine::evaluate_function: AddmmBackward0", 1, 20.0, 4.0, 20.0, -100, 0, 0),
        ("AddmmBackward0", 1, 16.0, 6.0, 16.0, -100, 0, 0),
        ("aten::mm", 2, 17.5, 17.5, 8.75, -100, -100, 48),
        ("[memory]", 1, 0.0, 0.0, 0.0, 4096, 4096, 0),
    ]
    assert rows[2].cpu_parent.name == "forward"
    assert [child.name for child in rows[2].cpu_children] == ["aten::addmm"]
    assert rows[0].cpu_parent is None
    assert rows[2] is rows[2]
    assert {row.input_shapes for row in rows} == {row.overload_name for row in rows} == {""}


def test_averages_by_shapes_overloads_and_stacks() -> None:
    inner, outer, other = Frame("m.py", 1, "f"), Frame("t.py", 2, "g"), Frame("t.py", 3, "h")
    wide = TensorInput((5, 5), "float32", (5, 1))
    trace = (
        Script()
        .add("mm", 0, 1, inputs=(MATRIX, 1), overload="out", stack=[inner, outer])
        .add("mm", 2, 4, inputs=(wide, 1), stack=[inner, other])
        .add("mm", 5, 9, inputs=(MATRIX, 2), stack=[inner, outer])
        .add("mm", 10, 18)
        .trace()
    )

    def grouped(**by: Any) -> list[tuple[Any, ...]]:
        return [(r.count, r.cpu_time_total, r.input_shapes, r.overload_name, r.stack) for r in averages_of(trace, **by)]

    assert grouped() == [(4, 15.0, "", "", [])]
    assert grouped(group_by_input_shapes=True) == [
        (2, 5.0, [[2, 3], []], "", []), (1, 2.0, [[5, 5], []], "", []), (1, 8.0, [], "", [])]
    assert grouped(group_by_overload_name=True) == [(1, 1.0, "", "out", []), (3, 14.0, "", "", [])]
    assert grouped(group_by_stack_n=1) == [(3, 7.0, "", "", [str(inner)]), (1, 8.0, "", "", [])]
    assert grouped(group_by_stack_n=2) == [
        (2, 5.0, "", "", [str(inner), str(outer)]), (1, 2.0, "", "", [str(inner), str(other)]), (1, 8.0, "", "", [])]


def test_nested_calls_of_one_name_count_twice_in_totals() -> None:
    trace = Script().add("f", 0, 10).add("f", 1, 5).add("g", 6, 7).trace()
    row = averages_of(trace)[0]
    assert (row.count, row.cpu_time_total, row.self_cpu_time_total) == (2, 14.0, 9.0)


TABLE = """\
----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
            Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n\
----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
        aten::mm        70.00%       1.050ms        70.00%       1.050ms     525.000us             2  \n\
    aten::linear        30.00%     450.000us       100.00%       1.500ms       1.500ms             1  \n\
      aten::view         0.00%       0.000us         0.00%       0.000us       0.000us             1  \n\
----------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
Self CPU time total: 1.500ms
Total: 3 rows, Count: 4 calls, 1.500ms
Dropped: 12 events beyond max_events
"""


def test_the_whole_table() -> None:
    trace = (Script().add("aten::linear", 0, 1500).add("aten::mm", 10, 1000).add("aten::view", 1100, 1100)
             .add("aten::mm", 1200, 1260).trace(dropped=12))
    assert averages_of(trace).table(sort_by="self_cpu_time_total") == TABLE
    assert events_of(trace).key_averages().table(sort_by="self_cpu_time_total") == TABLE
    assert "Dropped" not in averages_of(training()).table()
    assert averages_of(training()).table() == averages_of(training()).table()


def test_ties_stay_in_the_order_of_appearance() -> None:
    trace = Script().add("z", 0, 5).add("a", 10, 15).add("m", 20, 25).add("first", 30, 39).trace()
    rows = averages_of(trace).table(sort_by="cpu_time_total").splitlines()[3:7]
    assert [line.split()[0] for line in rows] == ["first", "z", "a", "m"]


def test_unknown_sort_keys_name_the_public_class() -> None:
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'nonsense'"):
        averages_of(training()).table(sort_by="nonsense")
    with pytest.raises(AttributeError, match="'FunctionEvent' object has no attribute 'nonsense'"):
        events_of(training()).table(sort_by="nonsense")


def test_nothing_recorded_is_an_empty_list_and_no_table() -> None:
    trace = Script().trace()
    for rows in (events_of(trace), averages_of(trace), events_of(trace).key_averages(), averages_of(
            trace, group_by_input_shapes=True, group_by_stack_n=2, group_by_overload_name=True, profile_memory=True)):
        assert rows == []
        assert str(rows) == rows.table() == ""
    only_memory = Script().memory(5, 64).trace()
    assert [(e.name, e.id, e.cpu_memory_usage, e["step"]) for e in events_of(only_memory, profile_memory=True)] == [
        ("[memory]", 1, 64, 0)]
    assert [(r.key, r.cpu_memory_usage) for r in averages_of(only_memory, profile_memory=True)] == [("[memory]", 64)]
    assert events_of(only_memory) == []


def test_attributes_can_be_assigned_and_totals_follow() -> None:
    events = events_of(training())
    linear, addmm = events[2], events[3]
    linear.name = "mine"
    addmm.time_range.end = addmm.time_range.start + 2
    assert (linear.name, linear.key, linear["name"]) == ("mine", "mine", "mine")
    assert (addmm.cpu_time_total, addmm.self_cpu_time_total) == (2.0, 2.0)
    assert linear.cpu_children == [addmm]
    assert linear.self_cpu_time_total == 28.0
    addmm.append_cpu_child(events[6])
    assert addmm.cpu_children == [events[6]]
    assert addmm.self_cpu_time_total == 0  # more than it has: never negative
    assert [row.key for row in events.key_averages()][2] == "mine"


def test_event_lists_are_lists() -> None:
    events = events_of(training())
    by_time = sorted(events, key=lambda event: -event.cpu_time_total)
    assert by_time[0].name == "ProfilerStep*"
    assert events[:2] == [events[0], events[1]]
    assert type(events[:2]) is list
    assert events.copy() == list(events)
    again = copy.copy(events)
    assert isinstance(again, EventList)
    assert again.table() == events.table()
    events.sort(key=lambda event: event.cpu_time_total)
    events.reverse()
    assert events[1].name == "forward"
    assert events[1].cpu_children[0].name == "aten::linear"
    assert isinstance(averages_of(training())[0], FunctionEventAvg)
    assert EventList([1], use_device="npu", profile_memory=True, with_flops=True) == [1]


def test_lists_survive_pickling() -> None:
    for rows in (events_of(training(), profile_memory=True), averages_of(training(), profile_memory=True)):
        again = pickle.loads(pickle.dumps(rows))
        assert again.table() == rows.table()
        assert again[2].cpu_parent.name == "forward"


def test_averages_add_up() -> None:
    first, second = averages_of(training())[-1], averages_of(training())[-1]
    first += second
    assert (first.key, first.count, first.cpu_time_total, first.flops) == ("aten::mm", 4, 35.0, 96)
    with pytest.raises(AssertionError, match="Expected keys to match, but got forward vs aten::mm"):
        first.add(averages_of(training())[1])
    with pytest.raises(AssertionError, match="Expected other to be a FunctionEvent or FunctionEventAvg"):
        first.add(3)
    total = events_of(training()).total_average()
    assert (total.key, total.count, total.self_cpu_time_total) == ("Total", 9, 120.0)


def test_lists_export_themselves(tmp_path: Path) -> None:
    events, rows = events_of(training()), averages_of(training(), group_by_stack_n=2)
    events.export_chrome_trace(str(tmp_path / "events.json"))
    assert [e["name"] for e in json.loads((tmp_path / "events.json").read_text())][:2] == ["ProfilerStep#4", "forward"]
    rows.export_chrome_trace(str(tmp_path / "rows.json"))
    assert len(json.loads((tmp_path / "rows.json").read_text())["traceEvents"]) == len(rows)
    rows.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
    assert (tmp_path / "stacks.txt").read_text().splitlines()[0] == \
        "train.py(9):_main;model.py(3):_forward;aten::linear 10"
    assert rows.supported_export_stacks_metrics() == [
        "self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]
    with pytest.raises(ValueError, match="metric should be one of: "):
        rows.export_stacks(str(tmp_path / "none.txt"), "cpu_time_total")


def test_device_types_equal_their_names_and_numbers() -> None:
    assert DeviceType.CPU == "CPU"
    assert DeviceType.PrivateUse1 == "NPU"
    assert DeviceType.PrivateUse1 == "PrivateUse1"
    assert DeviceType.CUDA != "CPU"
    assert DeviceType.CUDA == 1
    assert DeviceType.CUDA != 0
    assert np.int16(1) == DeviceType.CUDA
    assert np.int16(0) != DeviceType.CUDA
    assert DeviceType.CPU != None  # noqa: E711  the operator is what is tested
    assert {DeviceType.CUDA: "x"}[1] == "x"
    assert (str(DeviceType.CPU), f"{DeviceType.CPU}", repr(DeviceType.CPU)) == (
        "DeviceType.CPU", "DeviceType.CPU", "<DeviceType.CPU: 0>")
    assert pickle.loads(pickle.dumps(DeviceType.XPU)) is DeviceType.XPU


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Any intervals on up to three threads: nested, side by side, crossing, empty; some on a device, some hidden."""
    script = Script(threads=3)
    numbers = st.integers(0, 60)
    for _ in range(draw(st.integers(0, 25))):
        start, end = sorted((draw(numbers), draw(numbers)))
        on_device = draw(st.integers(0, 5)) == 0
        script.add(
            draw(st.sampled_from(["a", "b", "c", "aten::is_leaf", "ProfilerStep#1", "ProfilerStep#2"])), start, end,
            kind=Kind.KERNEL if on_device else draw(st.sampled_from([Kind.OP, Kind.SCOPE, Kind.BACKWARD_FUNCTION])),
            thread=2 if on_device else draw(st.integers(0, 1)), device=20 if on_device else 0,
            overload=draw(st.sampled_from(["", "out"])), correlation=draw(st.integers(0, 4)),
            sequence=draw(st.integers(-1, 3)),
            inputs=draw(st.sampled_from([None, (MATRIX,), (MATRIX, 1), (2,)])),
            stack=draw(st.sampled_from([None, [Frame("f.py", 1, "f")],
                                        [Frame("f.py", 1, "f"), Frame("g.py", 2, "g")]])))
    for _ in range(draw(st.integers(0, 6))):
        script.memory(draw(numbers), draw(st.integers(-10**10, 10**10)), device=draw(st.sampled_from([0, 20])),
                      thread=draw(st.integers(0, 1)))
    return script.trace()


@settings(max_examples=examples(150), deadline=None)
@given(trace=traces())
def test_self_times_are_not_negative_and_add_up_to_the_roots(trace: Trace) -> None:
    events = events_of(trace, use_device="npu", profile_memory=True)
    assert all(e.self_cpu_time_total >= 0 for e in events)
    roots = sum(e.cpu_time_total for e in events if e.cpu_parent is None)
    assert events.self_cpu_time_total == pytest.approx(roots)
    changed = sum(e.cpu_memory_usage for e in events if e.cpu_parent is None)
    memory = trace.optional("memory")
    assert changed == memory["size_bytes"][memory["device"] == 0].sum()
    assert changed == sum(e.self_cpu_memory_usage for e in events)
    for event in events:
        assert all(child.cpu_parent is event for child in event.cpu_children)
        assert event.cpu_parent is None or event in event.cpu_parent.cpu_children
    starts = [(e.time_range.start, -e.time_range.end) for e in events]
    assert starts == sorted(starts)


@settings(max_examples=examples(150), deadline=None)
@given(trace=traces(), shapes=st.booleans(), stack=st.integers(0, 2), overload=st.booleans())
def test_grouping_columns_is_grouping_events(trace: Trace, shapes: bool, stack: int, overload: bool) -> None:
    by = {"group_by_input_shapes": shapes, "group_by_stack_n": stack, "group_by_overload_name": overload}
    rows = averages_of(trace, use_device="npu", profile_memory=True, **by)
    events = events_of(trace, use_device="npu", profile_memory=True)
    grouped = events.key_averages(**by)
    exact = ("key", "count", "input_shapes", "stack", "overload_name", "cpu_memory_usage", "self_cpu_memory_usage",
             "device_memory_usage", "self_device_memory_usage", "device_type", "is_user_annotation", "flops", "scope",
             "node_id", "use_device", "is_legacy", "is_async", "is_remote")
    times = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")
    assert [[getattr(r, f) for f in exact] for r in rows] == [[getattr(r, f) for f in exact] for r in grouped]
    assert [[getattr(r, f) for f in times] for r in rows] == [
        pytest.approx([getattr(r, f) for f in times]) for r in grouped]
    assert sum(r.count for r in rows) == len(events)
    assert sum(r.self_cpu_time_total for r in rows) == pytest.approx(events.self_cpu_time_total)


def test_large_sums_stay_exact() -> None:
    build = TraceBuilder()
    build.thread(ThreadInfo(1, 1))
    name = build.name("big")
    starts = np.arange(3) * 10
    flops = np.array([2**55 + 1, 2**55 + 3, 5])
    build.add_columns("events", {"name": np.full(3, name), "start_ns": starts, "end_ns": starts + 1, "flops": flops})
    assert averages_of(build.finish())[0].flops == 2**56 + 9
