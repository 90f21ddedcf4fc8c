"""`with_modules=True`: the module that each event ran in, forward and backward."""

from __future__ import annotations

import collections
import copy
import gc
import json
import pathlib
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.module_flag import Flag
from mindtorch_v2.profiler import profile
from mtprof.schema import Kind
from mtprof.store import kineto
from mtprof.tables.check import check


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.act = torch.nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.inner(x)) * 2


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x).exp()


def modules_of(prof: Any, name: str) -> list[str | None]:
    return [event["module"] for event in prof.events() if event.name == name]


def test_forward() -> None:
    net = Net()
    with profile(with_modules=True) as prof:
        torch.ones(1).cos()
        net(torch.ones(3, 4))
        torch.ones(1).cos()
    check(prof.trace)
    assert modules_of(prof, "aten::linear") == ["blocks.0.inner", "blocks.1.inner", "head"]
    assert modules_of(prof, "aten::addmm") == ["blocks.0.inner", "blocks.1.inner", "head"]
    assert modules_of(prof, "aten::relu") == ["blocks.0.act", "blocks.1.act"]
    assert modules_of(prof, "aten::mul") == ["blocks.0", "blocks.1"]
    assert modules_of(prof, "aten::exp") == ["Net"]
    assert modules_of(prof, "aten::cos") == [None, None]
    assert not np.isin(prof.trace.events["kind"], [Kind.PYTHON, Kind.MODULE]).any(), "calls are shown with stacks only"


def test_backward() -> None:
    net = Net()
    with profile(with_modules=True) as prof:
        net(torch.ones(3, 4)).sum().backward()
    assert modules_of(prof, "ReluBackward0") == ["blocks.1.act", "blocks.0.act"]
    assert modules_of(prof, "AddmmBackward0") == ["head", "blocks.1.inner", "blocks.0.inner"]
    assert modules_of(prof, "MulBackward0") == ["blocks.1", "blocks.0"]
    assert modules_of(prof, "autograd::engine::evaluate_function: MulBackward0") == ["blocks.1", "blocks.0"]
    assert modules_of(prof, "SumBackward0") == [None]
    matrix_products = [event for event in prof.events() if event.name == "aten::mm"]
    assert len(matrix_products) >= 5
    for event in matrix_products:
        assert event.cpu_parent is not None
        assert event["module"] == event.cpu_parent["module"] is not None


def test_accumulating_a_gradient_belongs_to_the_module_that_used_the_parameter() -> None:
    net = Net()
    with profile(with_modules=True) as prof:
        net(torch.ones(3, 4)).sum().backward()
    found = modules_of(prof, "torch::autograd::AccumulateGrad")
    assert found == ["head", "head", "blocks.1.inner", "blocks.1.inner", "blocks.0.inner", "blocks.0.inner"]
    for event in prof.events():
        if event.cpu_parent is not None and event.cpu_parent.name == "torch::autograd::AccumulateGrad":
            assert event["module"] == event.cpu_parent["module"]


def test_backward_of_an_earlier_forward_is_of_no_module() -> None:
    net = Net()
    loss = net(torch.ones(3, 4)).sum()
    with profile(with_modules=True) as prof:
        loss.backward()
    assert set(modules_of(prof, "AddmmBackward0")) == {None}


def test_shared_and_repeated_modules() -> None:
    shared = torch.nn.Linear(4, 4)
    model = torch.nn.Sequential(shared, torch.nn.ReLU(), shared)
    with profile(with_modules=True, with_stack=True) as prof:
        model(torch.ones(1, 4))
        model(torch.ones(1, 4))
    assert modules_of(prof, "aten::linear") == ["0"] * 4
    calls = collections.Counter(e.name for e in prof.events() if e.name.startswith("nn.Module"))
    assert calls == {"nn.Module: Sequential_0": 2, "nn.Module: Linear_0": 4, "nn.Module: ReLU_0": 2}


def test_parts_called_on_their_own() -> None:
    net = Net()
    with profile(with_modules=True) as prof:
        net.head(torch.ones(1, 4))
        net(torch.ones(1, 4))
    assert modules_of(prof, "aten::linear") == ["head", "blocks.0.inner", "blocks.1.inner", "head"]
    with profile(with_modules=True) as prof:
        net.blocks[1](torch.ones(1, 4))
        net.head(torch.ones(1, 4))
    assert modules_of(prof, "aten::linear") == ["inner", "Linear"]


def test_models_with_equal_paths_are_told_apart() -> None:
    one, two = Net(), Net()
    loss = torch.nn.MSELoss()
    with profile(with_modules=True) as prof:
        loss(one(torch.ones(1, 4)), two(torch.ones(1, 4)))
    assert modules_of(prof, "aten::linear") == [
        f"Net_{n}.{path}" for n in (0, 1) for path in ("blocks.0.inner", "blocks.1.inner", "head")]
    assert modules_of(prof, "aten::exp") == ["Net_0", "Net_1"]
    assert modules_of(prof, "aten::mse_loss") == ["MSELoss"]


def test_threads() -> None:
    net = Net()
    threads = [threading.Thread(target=net, args=(torch.ones(2, 4),)) for _ in range(3)]
    with profile(with_modules=True) as prof:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = collections.defaultdict(list)
    for event in prof.events():
        if event.name == "aten::linear":
            found[event.thread].append(event["module"])
    assert list(found.values()) == [["blocks.0.inner", "blocks.1.inner", "head"]] * 3


def test_a_module_that_fails() -> None:
    class Fails(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            x.sin()
            raise ValueError("expected")

    with profile(with_modules=True) as prof:
        with pytest.raises(ValueError, match="expected"):
            Fails()(torch.ones(1))
        torch.ones(1).cos()
    assert modules_of(prof, "aten::sin") == ["Fails"]
    assert modules_of(prof, "aten::cos") == [None]


def test_a_module_called_in_the_backward() -> None:
    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            grad.cos()
            return act(grad)

    class Outer(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return Again.apply(x)

    act, outer = torch.nn.Tanh(), Outer()
    with profile(with_modules=True) as prof:
        outer(torch.ones(2, requires_grad=True)).sum().backward()
    assert modules_of(prof, "aten::tanh") == ["Tanh"]
    assert modules_of(prof, "AgainBackward") == ["Outer"]
    assert modules_of(prof, "aten::cos") == ["Outer"]


def test_hooks_still_run() -> None:
    seen: list[str] = []
    linear = torch.nn.Linear(2, 2)
    with profile(with_modules=True) as prof:
        handle = linear.register_forward_hook(lambda module, args, output: seen.append("after") or output.sin())
        linear(torch.ones(1, 2))
    linear(torch.ones(1, 2))
    handle.remove()
    assert seen == ["after", "after"]
    assert modules_of(prof, "aten::sin") == ["Linear"]


def test_the_flag_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flag, "raised", False)
    monkeypatch.setattr(Flag, "hooks", False)
    linear = torch.nn.Linear(2, 2)
    with profile(with_modules=True):
        assert Flag.raised
        with profile(with_stack=True):
            linear(torch.ones(1, 2))
        assert Flag.raised
        assert Flag.watch is not None
    assert not Flag.raised
    assert Flag.watch is None
    with profile():
        assert not Flag.raised
    with profile(with_modules=True):
        linear.register_forward_hook(lambda *_: None)
    assert Flag.raised
    assert Flag.watch is None


def test_modules_are_released_when_recording_ends() -> None:
    with profile(with_modules=True) as prof:
        module = torch.nn.Linear(2, 2)
        gone = weakref.ref(module)
        module(torch.ones(1, 2))
        del module
    gc.collect()
    assert gone() is None
    assert modules_of(prof, "aten::linear") == ["Linear"]


def test_labels_stay_over_a_pause() -> None:
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    activity = [torch.profiler.ProfilerActivity.CPU]
    with profile(with_modules=True, with_stack=True) as prof:
        first(torch.ones(1, 2))
        prof.toggle_collection_dynamic(False, activity)
        prof.toggle_collection_dynamic(True, activity)
        second(torch.ones(1, 2))
        first(torch.ones(1, 2))
    names = [event.name for event in prof.events() if event.name.startswith("nn.Module")]
    assert names == ["nn.Module: Linear_0", "nn.Module: Linear_1", "nn.Module: Linear_0"]


def test_results_are_those_without() -> None:
    net = Net()
    again = copy.deepcopy(net)
    with profile(with_modules=True, with_stack=True, record_shapes=True, with_flops=True) as prof:
        net(torch.ones(3, 4)).sum().backward()
    again(torch.ones(3, 4)).sum().backward()
    for one, two in zip(net.parameters(), again.parameters(), strict=True):
        assert torch.equal(one.grad, two.grad)
    assert [e.input_shapes for e in prof.events() if e.name == "aten::addmm"][-1] == [[2], [3, 4], [4, 2], [], []]


def test_group_by_module() -> None:
    net = Net()
    with profile(with_modules=True) as prof:
        net(torch.ones(3, 4)).sum().backward()
        net(torch.ones(3, 4)).sum().backward()
    rows = prof.key_averages(group_by_module=True)
    found = {row.module: row.count for row in rows if row.key == "aten::linear"}
    assert found == {"blocks.0.inner": 2, "blocks.1.inner": 2, "head": 2}
    assert {row.module for row in rows if row.key == "ReluBackward0"} == {"blocks.0.act", "blocks.1.act"}
    assert {row.module for row in rows if row.key == "aten::ones_like"} == {None}
    total = sum(row.self_cpu_time_total for row in prof.key_averages())
    assert sum(row.self_cpu_time_total for row in rows) == pytest.approx(total)
    with profile() as plain:
        torch.ones(1)
    with pytest.raises(ValueError, match="with_modules=True"):
        plain.key_averages(group_by_module=True)


def test_rows_by_module_say_which() -> None:
    net = Net()
    with profile(with_modules=True) as prof:
        net(torch.ones(3, 4))
    rows = prof.key_averages(group_by_module=True)
    header, *lines = [line.split() for line in rows.table().splitlines() if not line.startswith("-")]
    assert header[:2] == ["Name", "Module"]
    assert {line[1] for line in lines if line[0] == "aten::linear"} == {"blocks.0.inner", "blocks.1.inner", "head"}
    # The end of a path says more than its beginning.
    assert "....inner" in rows.table(max_name_column_width=13)
    assert "Module" not in prof.key_averages().table()
    table = json.loads(rows.to_json())
    assert [row["module"] for row in table] == [row.module for row in rows]
    assert "module" not in json.loads(prof.key_averages().to_json())[0]
    assert [row["module"] for row in json.loads(prof.events().to_json())] == [event.module for event in prof.events()]


def test_derivatives_of_derivatives() -> None:
    """A node that was recorded in a backward belongs to that backward's module."""
    net = Net()
    x = torch.ones(3, 4, requires_grad=True)
    with profile(with_modules=True) as prof:
        loss = net(x).sum()
        [first] = torch.autograd.grad(loss, x, create_graph=True)
        [second] = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)
        second.pow(2).sum().backward()
    of_matrix_products = collections.Counter(modules_of(prof, "MmBackward0"))
    assert set(of_matrix_products) == {"blocks.0.inner", "blocks.1.inner", "head"}
    outside = {event.name for event in prof.events() if event["module"] is None and event["kind"] == "backward"}
    assert {name for name in outside if "Mm" in name or "Exp" in name or "T" in name} == set()


def test_hooks_of_the_backward_belong_to_their_module() -> None:
    net = Net()
    net.head.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0].sinh(),))
    with profile(with_modules=True) as prof:
        net(torch.ones(3, 4)).sum().backward()
    assert modules_of(prof, "aten::sinh") == ["head"]
    # They are one function before the module's forward and one after.
    assert modules_of(prof, "BackwardHookFunction") == ["head", "head"]


def test_through_a_file(tmp_path: pathlib.Path) -> None:
    net = Net()
    with profile(with_modules=True, with_stack=True) as prof:
        net(torch.ones(3, 4)).sum().backward()
    prof.export_chrome_trace(tmp_path / "trace.json")
    again = check(kineto.read(tmp_path / "trace.json"))

    def modules(trace: Any) -> list[tuple[str, str | None]]:
        return [(trace.names[n], trace.names[m] if m >= 0 else None)
                for n, m in zip(trace.events["name"].tolist(), trace.events["module"].tolist(), strict=True)]

    assert modules(again) == modules(prof.trace)
    assert ("nn.Module: Linear_2", "head") in modules(again)


def test_not_asked_for() -> None:
    net = Net()
    for options in ({}, {"with_stack": True}):
        with profile(**options) as prof:
            net(torch.ones(3, 4))
        assert set(modules_of(prof, "aten::linear")) == {None}
