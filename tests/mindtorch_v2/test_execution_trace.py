"""Execution traces: what is in the file, when it is written, and what recording must not disturb."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.observer import HOOK
from mindtorch_v2._dispatch.state import NOWHERE, THREAD
from mindtorch_v2.autograd import _record_function_with_args_enter, _record_function_with_args_exit
from mindtorch_v2.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function, schedule
from mindtorch_v2.profiler.execution_trace import face as module
from mtprof.store import kineto

PROCESS = "[pytorch|profiler|execution_trace|process]"
THREAD_NODE = "[pytorch|profiler|execution_trace|thread]"


@pytest.fixture(autouse=True)
def nothing_is_left_on():
    yield
    known = ExecutionTraceObserver._registered_one
    left = None if known is None else known()
    if left is not None:
        left.unregister_callback()
    assert HOOK["TAP"] is None
    assert HOOK["OBSERVING"] is False
    assert THREAD.state.events is NOWHERE


def load(path: Any) -> dict[str, Any]:
    text = gzip.decompress(Path(path).read_bytes()) if str(path).endswith(".gz") else Path(path).read_bytes()
    return json.loads(text)


def attrs(node: dict[str, Any]) -> dict[str, Any]:
    return {a["name"]: a["value"] for a in node["attrs"]}


class Recorded:
    """A file, and how to find things in it."""

    def __init__(self, path: Any) -> None:
        self.file = load(path)
        self.nodes = self.file["nodes"]
        self.by_id = {node["id"]: node for node in self.nodes}
        assert len(self.by_id) == len(self.nodes), "ids are unique"

    def named(self, name: str) -> list[dict[str, Any]]:
        return [node for node in self.nodes if node["name"] == name]

    def one(self, name: str) -> dict[str, Any]:
        (node,) = self.named(name)
        return node

    def parents(self, node: dict[str, Any]) -> list[str]:
        names = []
        while node["id"] != node["ctrl_deps"]:
            node = self.by_id[node["ctrl_deps"]]
            names.append(node["name"])
        return names


def record(path: Any, function: Any) -> Recorded:
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    try:
        function()
    finally:
        observer.stop()
        observer.unregister_callback()
    return Recorded(path)


def training_step() -> None:
    x = torch.ones(4, 3, requires_grad=True)
    w = torch.ones(2, 3, requires_grad=True)
    with record_function("## FORWARD ##"):
        y = torch.nn.functional.linear(x, w).relu()
    y.sum().backward()
    torch.optim.SGD([w], lr=0.1).step()


# -- the file ----------------------------------------------------------------------------------------------------------


def test_the_file_has_a_process_a_thread_and_a_tree(tmp_path):
    trace = record(tmp_path / "a.json", training_step)
    assert trace.file["schema"] == "1.1.1-chakra.0.0.4"
    assert trace.file["pid"] == os.getpid()
    assert trace.file["start_ts"] <= trace.file["finish_ts"]
    assert list(trace.file) == ["schema", "pid", "time", "start_ts", "nodes", "finish_ts"]
    root = trace.one(PROCESS)
    assert root["id"] == root["ctrl_deps"] == 1
    assert trace.parents(trace.one(THREAD_NODE)) == [PROCESS]
    for node in trace.nodes:
        assert list(node) == ["id", "name", "ctrl_deps", "inputs", "outputs", "attrs"]
        assert trace.parents(node)[-1:] == ([PROCESS] if node is not root else [])
        for side in (node["inputs"], node["outputs"]):
            assert len({len(column) for column in side.values()}) == 1
            assert list(side) == ["values", "shapes", "types", "strides"]


def test_ops_scopes_backward_and_optimizer_are_nodes_where_they_belong(tmp_path):
    trace = record(tmp_path / "a.json", training_step)
    assert trace.parents(trace.one("aten::linear")) == ["## FORWARD ##", THREAD_NODE, PROCESS]
    engine = "autograd::engine::evaluate_function: ReluBackward0"
    assert trace.parents(trace.one("ReluBackward0")) == [engine, THREAD_NODE, PROCESS]
    assert trace.parents(trace.one("aten::threshold_backward"))[0] == "ReluBackward0"
    assert len(trace.named("torch::autograd::AccumulateGrad")) == 2
    assert trace.one("Optimizer.step#SGD.step")["inputs"]["values"] == []
    scopes = {name: attrs(trace.one(name))["scope"] for name in ("aten::relu", engine, "ReluBackward0",
                                                                 "## FORWARD ##", "Optimizer.step#SGD.step")}
    assert list(scopes.values()) == [0, 0, 1, 7, 7]


def test_a_backward_function_has_its_ops_sequence_number_and_thread(tmp_path):
    trace = record(tmp_path / "a.json", training_step)
    backward, forward = trace.one("ReluBackward0"), trace.one("aten::relu")
    assert attrs(backward)["seq_id"] == attrs(forward)["seq_id"] >= 0
    assert attrs(backward)["fw_tid"] == attrs(forward)["tid"] == 1
    assert attrs(backward)["fw_parent"] == backward["ctrl_deps"]
    assert attrs(forward)["fw_tid"] == attrs(forward)["fw_parent"] == 0


def test_a_backward_function_names_the_thread_that_ran_forward(tmp_path):
    made: list[Any] = []

    def program() -> None:
        leaf = torch.ones(2, requires_grad=True)
        (leaf * 2).sum().backward()  # the same sequence numbers, on this thread
        thread = threading.Thread(target=lambda: made.append((torch.ones(2, requires_grad=True) * 3).sum()))
        thread.start()
        thread.join()
        made[0].backward()

    trace = record(tmp_path / "a.json", program)
    here, there = trace.named("MulBackward0")
    assert [attrs(here)["fw_tid"], attrs(there)["fw_tid"]] == [1, 2]
    assert attrs(there)["tid"] == 1
    assert trace.by_id[attrs(there)["fw_parent"]]["name"] == THREAD_NODE
    assert [attrs(n)["fw_tid"] for n in trace.named("torch::autograd::AccumulateGrad")] == [1, 2]


def test_tensors_are_number_storage_offset_elements_itemsize_device(tmp_path):
    x = torch.arange(12.0).reshape(3, 4)
    row = x[1]

    def program() -> None:
        row + x
        x.sum(0)

    trace = record(tmp_path / "a.json", program)
    inputs = trace.one("aten::add")["inputs"]
    (row_id, row_storage, *row_rest), (x_id, x_storage, *x_rest), alpha = inputs["values"]
    assert row_rest == [4, 4, 4, "cpu"]
    assert x_rest == [0, 12, 4, "cpu"]
    assert row_storage == x_storage
    assert row_id != x_id
    assert alpha == 1
    assert inputs["shapes"] == [[4], [3, 4], []]
    assert inputs["strides"] == [[1], [4, 1], []]
    assert inputs["types"] == ["Tensor(float)", "Tensor(float)", "Int"]
    sums = [n for n in trace.named("aten::sum") if n["inputs"]["values"][0][0] == x_id]
    assert sums, "the same tensor has the same number in every op"


def test_numbers_follow_tensors_from_output_to_input_and_are_not_used_twice(tmp_path):
    def program() -> None:
        x = torch.ones(3)
        for _ in range(50):
            x = torch.exp(x)  # each result takes the place of one that has died

    trace = record(tmp_path / "a.json", program)
    exps = trace.named("aten::exp")
    made = [n["outputs"]["values"][0][0] for n in exps]
    assert [n["inputs"]["values"][0][0] for n in exps[1:]] == made[:-1]
    assert len(set(made)) == 50
    assert len({n["outputs"]["values"][0][1] for n in exps}) == 50


def test_in_place_ops_return_the_tensor_they_were_given(tmp_path):
    x = torch.zeros(2)
    trace = record(tmp_path / "a.json", lambda: x.add_(1))
    node = trace.one("aten::add_")
    assert node["outputs"]["values"][0] == node["inputs"]["values"][0]
    assert attrs(node)["op_schema"] == (
        "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)")


def test_out_is_an_input_too(tmp_path):
    x, out = torch.ones(2), torch.empty(2)
    trace = record(tmp_path / "a.json", lambda: torch.add(x, x, out=out))
    node = trace.one("aten::add")
    assert attrs(node)["op_schema"] == (
        "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)")
    assert node["inputs"]["values"][-1] == node["outputs"]["values"][0]


def test_several_outputs_lists_and_missing_tensors(tmp_path):
    x = torch.ones(4, 3)

    def program() -> None:
        x.max(1)
        torch.split(x, 2)
        torch.cat([x, x])
        x[:, torch.tensor([0])]

    trace = record(tmp_path / "a.json", program)
    assert trace.one("aten::max")["outputs"]["types"] == ["Tensor(float)", "Tensor(long int)"]
    assert trace.one("aten::split")["outputs"]["types"] == ["GenericList[Tensor(float),Tensor(float)]"]
    assert trace.one("aten::cat")["inputs"]["shapes"] == [[[4, 3], [4, 3]], []]
    indices = trace.one("aten::index")["inputs"]
    assert indices["types"][1] == "GenericList[Tensor(nullptr (uninitialized)),Tensor(long int)]"
    assert indices["values"][1][0][1:] == [0, 0, 0, 0, ""]


def test_values_of_a_scope(tmp_path):
    u = torch.ones(2, 3)

    def program() -> None:
        scope = _record_function_with_args_enter(
            "## VALUES ##", 1, False, 2.5, [u, u], (u, 2, "s"), 'quo"te\n', float("inf"), float("-inf"), float("nan"),
            None, torch.float32, torch.device("cpu"), [1.5], 2**70, 1j, object())
        _record_function_with_args_exit(scope)
        with record_function("## TEXT ##", "1, 2, 3"):
            pass

    trace = record(tmp_path / "a.json", program)
    inputs = trace.one("## VALUES ##")["inputs"]
    assert inputs["types"] == [
        "Int", "Bool", "Double", "GenericList[Tensor(float),Tensor(float)]", "Tuple[Tensor(float),Int,String]",
        "String", "Double", "Double", "Double", "None", "Int", "Device", "GenericList[Double]", "Int",
        "ComplexDouble", "object"]
    assert inputs["values"][5:13] == ['quo"te\n', "inf", "-inf", "nan", "<None>", 6, "cpu", [1.5]]
    assert inputs["shapes"][3:5] == [[[2, 3], [2, 3]], [[2, 3], [], []]]
    assert trace.one("## TEXT ##")["inputs"] == {"values": ["1, 2, 3"], "shapes": [[]], "types": ["String"],
                                                 "strides": [[]]}


def test_threads_have_nodes_of_their_own(tmp_path):
    started = threading.Barrier(3)

    def work() -> None:
        started.wait(10)
        with record_function("work"):
            for _ in range(20):
                torch.ones(2) * 2

    def program() -> None:
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    trace = record(tmp_path / "a.json", program)
    lanes = trace.named(THREAD_NODE)
    assert sorted(attrs(n)["tid"] for n in lanes) == [1, 2, 3]
    tids = {n["id"]: attrs(n)["tid"] for n in trace.nodes}
    works = trace.named("work")
    assert len({n["ctrl_deps"] for n in works}) == 3
    for scope in works:
        inside = [n for n in trace.named("aten::mul") if n["ctrl_deps"] == scope["id"]]
        assert len(inside) == 20
        assert {tids[n["id"]] for n in inside} == {tids[scope["id"]]}


def test_an_op_that_fails_has_no_outputs_and_closes(tmp_path):
    def program() -> None:
        with pytest.raises(RuntimeError, match="size of tensor a"):
            torch.ones(2) + torch.ones(3)
        torch.ones(4).exp()

    trace = record(tmp_path / "a.json", program)
    assert trace.one("aten::add")["outputs"]["values"] == []
    assert trace.parents(trace.one("aten::exp")) == [THREAD_NODE, PROCESS]


def test_an_error_is_the_same_as_without(tmp_path):
    def message(function: Any) -> str:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is what is compared
            function()
        return f"{type(caught.value).__name__}: {caught.value}"

    wrong = [lambda: torch.ones(2) + torch.ones(3), lambda: torch.ones(2).sum(5), lambda: torch.cat([1]),
             lambda: torch.add("a", 1), lambda: torch.ones(2).view(5), lambda: torch.ones(2, 3).mm(torch.ones(2, 3))]
    before = [message(f) for f in wrong]
    during: list[str] = []
    record(tmp_path / "a.json", lambda: during.extend(message(f) for f in wrong))
    assert during == before


def test_every_way_to_pass_arguments_gives_the_same_result(tmp_path):
    x = torch.arange(6.0).reshape(2, 3)
    calls = [lambda: x.view(3, 2), lambda: x.view((3, 2)), lambda: x.permute(1, 0),
             lambda: x.sum(axis=0, keepdims=True), lambda: torch.add(x, 2, alpha=3),
             lambda: torch.sum(input=x, dim=1), lambda: x.reshape(-1),
             lambda: torch.zeros(2, 3), lambda: torch.zeros((2, 3)), lambda: x.expand(4, 2, 3), lambda: x.max(1).values,
             lambda: x.flip(0), lambda: torch.ones(()), lambda: x.std(), lambda: x.repeat(2, 2), lambda: x.norm()]
    before = [call() for call in calls]
    during: list[Any] = []
    record(tmp_path / "a.json", lambda: during.extend(call() for call in calls))
    for got, want in zip(during, before, strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


# -- life cycle --------------------------------------------------------------------------------------------------------


def test_only_what_runs_between_start_and_stop_is_recorded(tmp_path):
    observer = ExecutionTraceObserver()
    assert observer.get_output_file_path() is None
    path = str(tmp_path / "a.json")
    assert observer.register_callback(path) is observer
    assert observer.is_registered
    assert not observer.is_running()
    for i in range(10):
        if i in (3, 5, 6):
            observer.start()
        with record_function(f"## LOOP {i} ##"):
            torch.ones(1)
        if i in (3, 5, 6):
            observer.stop()
    observer.stop()
    observer.unregister_callback()
    assert observer.get_output_file_path() == path
    assert not observer.is_registered
    observer.unregister_callback()
    loops = [n["name"] for n in load(path)["nodes"] if n["name"].startswith("## LOOP")]
    assert loops == ["## LOOP 3 ##", "## LOOP 5 ##", "## LOOP 6 ##"]
    assert len(Recorded(path).named(THREAD_NODE)) == 1


def test_again_and_again(tmp_path):
    for i in range(3):
        trace = record(tmp_path / f"{i}.json", lambda i=i: torch.ones(i + 1))
        assert len(trace.named(PROCESS)) == 1
        assert trace.one("aten::ones")["inputs"]["values"][0] == [i + 1]


def test_without_start_there_is_only_the_process(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    torch.ones(1)
    observer.unregister_callback()
    assert [n["name"] for n in load(tmp_path / "a.json")["nodes"]] == [PROCESS]


def test_start_without_a_file_does_nothing():
    observer = ExecutionTraceObserver()
    observer.start()
    assert not observer.is_running()
    assert HOOK["TAP"] is None


def test_scopes_that_are_open_at_the_ends(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    with record_function("before"):
        observer.start()
        torch.ones(1)
    with record_function("across"):
        torch.ones(2)
        observer.stop()
        torch.ones(3)
    observer.start()
    with record_function("still open"):
        torch.ones(4)
        observer.unregister_callback()
    trace = Recorded(tmp_path / "a.json")
    assert not trace.named("before")
    sizes = {tuple(n["inputs"]["values"][0]): trace.parents(n)[0] for n in trace.named("aten::ones")}
    assert sizes == {(1,): THREAD_NODE, (2,): "across", (4,): "still open"}


def test_gz_is_compressed(tmp_path):
    trace = record(tmp_path / "a.json.gz", lambda: torch.ones(1))
    assert trace.named("aten::ones")
    assert os.listdir(tmp_path) == ["a.json.gz"]


def test_deleting_a_registered_observer_writes(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    observer.start()
    torch.ones(1)
    del observer
    gc.collect()
    assert Recorded(tmp_path / "a.json").named("aten::ones")


def test_the_end_of_the_program_writes(tmp_path):
    code = ("import sys, mindtorch_v2 as torch\n"
            "observer = torch.profiler.ExecutionTraceObserver().register_callback(sys.argv[1])\n"
            "observer.start()\n"
            "torch.ones(1)\n")
    source = str(Path(torch.__file__).parent.parent)
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.json")], capture_output=True, text=True,
                         check=True, env={**os.environ, "PYTHONPATH": source})
    assert ran.stderr == ""
    assert Recorded(tmp_path / "a.json").named("aten::ones")


def test_a_directory_that_is_not_there_is_told_at_once(tmp_path):
    observer = ExecutionTraceObserver()
    with pytest.warns(UserWarning, match="cannot be written"):
        observer.register_callback(str(tmp_path / "nowhere" / "a.json"))
    assert not observer.is_registered


def test_one_observer_at_a_time(tmp_path):
    first = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    second = ExecutionTraceObserver()
    with pytest.warns(UserWarning, match="only one execution trace"):
        second.register_callback(str(tmp_path / "b.json"))
    assert first.is_registered
    assert not second.is_registered
    first.unregister_callback()
    assert second.register_callback(str(tmp_path / "b.json")).is_registered


def test_a_write_that_fails_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("old")
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    torch.ones(1)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_atomically", full)
        with pytest.raises(OSError, match="No space left"):
            observer.unregister_callback()
    assert observer.is_registered
    assert path.read_text() == "old"
    observer.unregister_callback()
    assert Recorded(path).named("aten::ones")
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_silent(tmp_path):
    path = tmp_path / "a.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    with record_function("around"):
        torch.ones(1)
        child = os.fork()
        if child == 0:
            quiet = HOOK["TAP"] is None and HOOK["OBSERVING"] is False
            torch.ones(9)
            observer.unregister_callback()
            os._exit(0 if quiet and not path.exists() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        torch.ones(2)
    observer.unregister_callback()
    assert [n["inputs"]["values"][0] for n in Recorded(path).named("aten::ones")] == [[1], [2]]


def test_tensors_are_not_kept_alive(tmp_path):
    gone: list[Any] = []

    def program() -> None:
        x = torch.ones(100)
        y = x * 2
        gone.extend(weakref.ref(t) for t in (x, y, y._a))
        del x, y
        gone.append([reference() for reference in gone])

    record(tmp_path / "a.json", program)
    assert gone[-1] == [None, None, None]


# -- together with the profiler ----------------------------------------------------------------------------------------


def record_ids(path: Any) -> list[int]:
    return sorted(e["args"]["Record function id"] for e in load(path)["traceEvents"]
                  if e.get("cat") in ("cpu_op", "user_annotation"))


def test_the_profilers_file_has_the_same_ids(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    plan = schedule(skip_first=3, wait=1, warmup=1, active=2, repeat=1)
    x = torch.ones(2, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, record_shapes=True,
                 execution_trace_observer=observer,
                 on_trace_ready=lambda p: p.export_chrome_trace(str(tmp_path / "k.json"))) as prof:
        for i in range(10):
            with record_function(f"## LOOP {i} ##"):
                (x * 2).sum().backward()
            prof.step()
    assert not observer.is_registered, "leaving the profiler writes the file"
    trace = Recorded(tmp_path / "a.json")
    assert [n["name"] for n in trace.nodes if "LOOP" in n["name"]] == ["## LOOP 5 ##", "## LOOP 6 ##"]
    ids = sorted(attrs(n)["rf_id"] for n in trace.nodes if n["name"] not in (PROCESS, THREAD_NODE))
    assert ids == record_ids(tmp_path / "k.json")
    assert len(set(ids)) == len(ids) > 20
    by_id = {attrs(n)["rf_id"]: n["name"] for n in trace.nodes}
    for event in load(tmp_path / "k.json")["traceEvents"]:
        if event.get("cat") in ("cpu_op", "user_annotation"):
            assert by_id[event["args"]["Record function id"]] == event["name"]


def test_ids_with_modules_stacks_and_threads(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    with profile(with_stack=True, with_modules=True, profile_memory=True, execution_trace_observer=observer) as prof:
        thread = threading.Thread(target=lambda: model(torch.ones(1, 3)))
        thread.start()
        model(torch.ones(2, 3)).sum().backward()
        thread.join()
    prof.export_chrome_trace(str(tmp_path / "k.json"))
    trace = Recorded(tmp_path / "a.json")
    ids = sorted(attrs(n)["rf_id"] for n in trace.nodes if n["name"] not in (PROCESS, THREAD_NODE))
    assert ids == record_ids(tmp_path / "k.json")
    assert not any("execution_trace/tap" in name for name in prof.trace.names), "the tap is not part of the stacks"


def test_ids_when_the_profiler_runs_out_of_room(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    with profile(max_events=7, execution_trace_observer=observer) as prof:
        for _ in range(5):
            torch.ones(2)
    prof.export_chrome_trace(str(tmp_path / "k.json"))
    by_id = {attrs(n)["rf_id"]: n["name"] for n in Recorded(tmp_path / "a.json").nodes}
    events = [e for e in load(tmp_path / "k.json")["traceEvents"] if e.get("cat") == "cpu_op"]
    assert len(events) == 7
    assert [by_id[e["args"]["Record function id"]] for e in events] == [e["name"] for e in events]


def test_a_profiler_that_starts_later_and_stops_earlier(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    observer.start()
    torch.ones(1)
    with profile() as prof:
        torch.ones(2)
    torch.ones(3)
    observer.stop()
    observer.unregister_callback()
    prof.export_chrome_trace(str(tmp_path / "k.json"))
    trace = Recorded(tmp_path / "a.json")
    assert len(trace.named("aten::ones")) == 3
    (middle,) = (n for n in trace.named("aten::ones") if n["inputs"]["values"][0] == [2])
    expected = [attrs(n)["rf_id"] for n in trace.nodes if n is middle or n["ctrl_deps"] == middle["id"]]
    assert record_ids(tmp_path / "k.json") == sorted(expected)


def test_without_an_observer_ids_are_zero(tmp_path):
    with profile() as prof:
        torch.ones(2)
    prof.export_chrome_trace(str(tmp_path / "k.json"))
    assert set(record_ids(tmp_path / "k.json")) == {0}


def test_the_recording_is_the_same_with_an_observer(tmp_path):
    def rows(observer: Any) -> list[tuple[Any, ...]]:
        with profile(record_shapes=True, execution_trace_observer=observer) as prof:
            training_step()
        return [(e.name, e.input_shapes, e.cpu_parent.name if e.cpu_parent else None) for e in prof.events()]

    assert rows(ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))) == rows(None)


# -- the environment ---------------------------------------------------------------------------------------------------


def test_the_environment_switches_it_on(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "1")
    with profile() as prof:
        torch.ones(2)
    path = prof.execution_trace_observer.get_output_file_path()
    assert path.endswith(".et.json")
    assert Recorded(path).named("aten::ones")
    resources = prof.execution_trace_observer.get_resources_dir()
    assert resources == path[: -len(".json")] + "_resources"
    assert os.path.isdir(resources)


@pytest.mark.parametrize("value", [None, "0", "yes"])
def test_otherwise_it_stays_off(monkeypatch, value):
    monkeypatch.delenv("ENABLE_PYTORCH_EXECUTION_TRACE", raising=False)
    if value is not None:
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", value)
    assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
    assert profile().execution_trace_observer is None


def test_ranges_and_contents_of_integer_tensors(monkeypatch, tmp_path):
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_RANGE", "1")
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_SAVE_INTEGRAL_TENSOR_DATA", "aten::gather,aten::embedding")
    values, index = torch.tensor([[1, 2], [3, 4]]), torch.tensor([[0, 0], [1, 0]])
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    observer.set_extra_resource_collection(True)
    observer.start()
    torch.gather(values, 1, index)
    torch.nn.functional.embedding(torch.tensor([2, 1]), torch.ones(3, 2))
    values.float().exp()
    values + 7
    observer.unregister_callback()
    trace = Recorded(tmp_path / "a.json")
    gather = trace.one("aten::gather")
    assert attrs(gather)["tensor_range"] == '{"0":[1,4],"1":[0,1]}'
    assert attrs(trace.one("aten::embedding"))["tensor_range"] == '{"1":[1,2]}'
    assert attrs(trace.one("aten::exp"))["tensor_range"] == ""
    assert attrs(trace.one("aten::add"))["tensor_range"] == '{"0":[1,4],"1":[7,7]}'
    resources = tmp_path / "a_resources"
    kept = np.fromfile(resources / f"nid_{gather['id']}_tid_1.dat", np.int64)
    np.testing.assert_array_equal(kept, index.numpy().reshape(-1))
    assert len(os.listdir(resources)) == 3


def test_the_resources_directory_is_made_only_if_asked(tmp_path):
    path = str(tmp_path / "a.json")
    observer = ExecutionTraceObserver().register_callback(path)
    assert observer.get_resources_dir(can_create=True) is None
    assert ExecutionTraceObserver.get_resources_dir_for_et_path(path) is None
    observer.set_extra_resource_collection(True)
    assert observer.get_resources_dir() == str(tmp_path / "a_resources")
    observer.unregister_callback()


def test_ids_survive_the_profilers_file(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "a.json"))
    with profile(execution_trace_observer=observer) as prof:
        training_step()
    prof.export_chrome_trace(str(tmp_path / "k.json"))
    again = kineto.read(str(tmp_path / "k.json"))
    assert prof.trace.events["record_id"].all()
    np.testing.assert_array_equal(again.events["record_id"], prof.trace.events["record_id"])
