"""`prof.module_tree()`: own parts and totals of each module, on real and made-up traces."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.checkpoint import checkpoint
from mtprof.views.module_tree import MEASURES, ModuleTree

nn = torch.nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x).tanh()
        return x * self.scale


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(4, 2, bias=False)

    def forward(self, x: Any) -> Any:
        return self.head(self.block(self.block(x)))


def tree_of(run: Any, **flags: Any) -> tuple[Any, ModuleTree]:
    with torch.profiler.profile(with_modules=True, **flags) as prof:
        run()
    return prof, prof.module_tree()


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "with_stack"])
def recorded(request: pytest.FixtureRequest) -> tuple[Any, ModuleTree, Any]:
    model = Model()

    def run() -> None:
        for _ in range(3):
            model(torch.ones(5, 4)).sum().backward()

    return (*tree_of(run, profile_memory=True, with_flops=True, with_stack=request.param), model)


def test_the_tree_is_the_model(recorded: tuple[Any, ModuleTree, Any]) -> None:
    tree = recorded[1]
    assert [(node.path, node.calls) for node in tree] == [
        ("Model", 3), ("block", 6), ("block.parts.0", 6), ("block.parts.1", 6), ("head", 3)]
    assert [child.path for child in tree["block"].children] == ["block.parts.0", "block.parts.1"]
    with pytest.raises(KeyError, match=r"no module 'block\.parts' was called, only Model, block"):
        tree["block.parts"]


def test_totals_add_up(recorded: tuple[Any, ModuleTree, Any]) -> None:
    for node in recorded[1]:
        for name in MEASURES[1:]:
            children = sum(getattr(child, name) for child in node.children)
            assert getattr(node, name) == getattr(node, f"self_{name}") + children
            assert getattr(node, f"self_{name}") >= 0


def test_totals_are_those_of_the_recording(recorded: tuple[Any, ModuleTree, Any]) -> None:
    prof, tree, model = recorded
    trace, root = prof.trace, tree["Model"]
    calls = trace.module_calls
    outer = calls["parent"] < 0
    assert root.forward_ns == (calls["end_ns"] - calls["start_ns"])[outer].sum()
    allocated = trace.memory["size_bytes"][trace.memory["size_bytes"] > 0].sum()
    assert root.allocated_bytes + tree.outside.allocated_bytes == allocated
    assert root.allocated_bytes > 0
    nodes = [e for e in prof.events() if e.name.startswith("autograd::engine")]
    backward = sum(e.time_range.elapsed_us() for e in nodes) * 1000
    assert root.backward_ns + tree.outside.backward_ns == pytest.approx(backward, abs=1000)
    assert root.flops + tree.outside.flops == sum(row.flops for row in prof.key_averages())
    assert tree["head"].flops == 3 * (2 * 5 * 4 * 2) * 3, "forward, and two products in the backward"
    assert root.parameters == sum(p.numel() for p in model.parameters())
    assert (tree["block"].self_parameters, tree["head"].parameters) == (4, 8)


def test_table(recorded: tuple[Any, ModuleTree, Any]) -> None:
    tree = recorded[1]
    lines = str(tree).splitlines()
    assert lines[1].split() == ["Module", "Calls", "Forward", "Self", "forward", "Backward", "Allocated", "Self",
                                "allocated", "FLOPs", "Parameters"]
    assert [line[: lines[0].index("  ")].rstrip() for line in lines[3:-1]] == [
        "Model", "├─ block (Block)", "│  ├─ parts.0 (Linear)", "│  └─ parts.1 (Linear)", "└─ head (Linear)",
        "(outside of modules)"]
    assert len({len(line) for line in lines}) == 1
    assert "parts.0" not in tree.table(max_depth=2)
    assert "ms" in tree.table(time_unit="ms").splitlines()[3]
    assert repr(tree) == "<ModuleTree of 5 modules>"


def test_to_dict(recorded: tuple[Any, ModuleTree, Any]) -> None:
    tree = recorded[1]
    plain = tree.to_dict()
    assert plain["modules"][0]["children"][1]["path"] == "head"
    assert plain["modules"][0]["parameters"] == tree["Model"].parameters
    assert plain["outside"]["calls"] == 0


def test_columns_that_were_not_recorded_are_not_shown() -> None:
    model = Model()
    _, tree = tree_of(lambda: model(torch.ones(1, 4)))
    assert str(tree).splitlines()[1].split() == [
        "Module", "Calls", "Forward", "Self", "forward", "Backward", "Parameters"]


def test_parts_that_are_never_called_count_for_the_module_around_them() -> None:
    attention = nn.MultiheadAttention(8, 2)
    x = torch.ones(3, 1, 8)
    _, tree = tree_of(lambda: attention(x, x, x))
    assert [node.path for node in tree] == ["MultiheadAttention"]
    assert tree.roots[0].parameters == sum(p.numel() for p in attention.parameters())


def test_shared_parameters_count_once() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    _, tree = tree_of(lambda: model(torch.ones(1, 4)))
    assert tree["Sequential"].parameters == 16 + 4 + 4
    assert tree["1"].parameters == 4


def test_two_models() -> None:
    first, second = nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    _, tree = tree_of(lambda: second(first(torch.ones(1, 4))))
    assert [root.label for root in tree.roots] == ["Sequential_0", "Sequential_1"]
    assert [len(root.children) for root in tree.roots] == [1, 2]


def test_a_part_with_the_name_of_its_models_class() -> None:
    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.Linear = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.Linear(x)

    _, tree = tree_of(lambda: Linear()(torch.ones(1, 2)))
    assert [root.path for root in tree.roots] == ["Linear"]
    assert tree.roots[0].calls == 2


def test_what_a_checkpoint_computes_again_is_backward_time() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def run() -> None:
        checkpoint(model, torch.ones(2, 4, requires_grad=True), use_reentrant=True).sum().backward()

    prof, tree = tree_of(run)
    calls = prof.trace.module_calls
    outer = calls["parent"] < 0
    assert tree["Sequential"].calls == outer.sum() == 2
    assert tree["Sequential"].forward_ns == (calls["end_ns"] - calls["start_ns"])[outer][0]


def test_needs_modules() -> None:
    with torch.profiler.profile() as prof:
        torch.ones(1)
    with pytest.raises(ValueError, match="with_modules=True required"):
        prof.module_tree()


def test_no_module_was_called() -> None:
    _, tree = tree_of(lambda: torch.ones(3) + torch.ones(3), profile_memory=True)
    assert list(tree) == []
    assert tree.outside.allocated_bytes == 36
    assert tree.to_dict()["modules"] == []
    assert "(outside of modules)" in str(tree)


def test_a_chrome_trace_has_the_same_tree(tmp_path):
    """Also if the paths of a model's direct parts do not begin with its name."""
    first = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), torch.nn.Linear(2, 2))
    second = torch.nn.Sequential(torch.nn.Linear(2, 2))
    for models in ([first], [first, second]):
        with torch.profiler.profile(with_stack=True, with_modules=True) as prof:
            for model in models:
                model(torch.ones(1, 2)).sum().backward()
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        tree, again = prof.module_tree(), torch.profiler.load(tmp_path / "trace.json").module_tree()

        def facts(nodes):
            return [(node.path, node.calls, node.forward_ns, node.self_forward_ns, [one.path for one in node.children])
                    for node in nodes]

        assert facts(again) == facts(tree)
        assert max(len(node.children) for node in tree) == 2
