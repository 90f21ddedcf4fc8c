"""`torch.fx` on both: the same graphs, the same code, the same results."""

from __future__ import annotations

import copy
import importlib
import io
import math
import operator

import pytest
from harness import assert_same

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
BOTH = (ours, torch)


def programs(t):
    nn = t.nn

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
            self.scale = nn.Parameter(t.ones(4))
            self.register_buffer("shift", t.zeros(4))

        def forward(self, x):
            return self.layers(x) * self.scale + self.shift

    class Methods(nn.Module):
        def forward(self, x, dim=1):
            y = x.view(x.size(0), -1).transpose(0, 1)
            a, b = y.chunk(2, 0)
            return {"sum": (a - b).sum(dim), "shape": y.shape[0], "flat": t.flatten(x, 1)[:, 1:3]}

    class Functions(nn.Module):
        def forward(self, x):
            y = t.relu(x) + t.cat([x, x], dim=1)[:, :4]
            z = -y @ y.t() / math.sqrt(4) if y is not None else y
            z += 1
            return t.softmax(z, dim=-1, dtype=t.float64), t.arange(3, device=t.device("cpu")), abs(x), 2 - x, ~(x > 0)

    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Plain()
            self.conv = nn.Conv1d(1, 2, 1)
            self.list = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

        def forward(self, x):
            for layer in self.list:
                x = layer(x).relu_()
            return self.conv(self.inner(x).unsqueeze(1)).mean((1, 2), keepdim=True)

    class Constant(nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = t.full((4,), 2.0)

        def forward(self, x, *args, factor=2.0, **kwargs):
            return x * self.kept * factor

    return {"plain": Plain, "methods": Methods, "functions": Functions, "nested": Nested, "constant": Constant}


def made(t, name):
    t.manual_seed(0)
    return programs(t)[name]()


NAMES = sorted(programs(ours))


@pytest.mark.parametrize("name", NAMES)
def test_graph_and_code(name):
    mine, reference = (t.fx.symbolic_trace(made(t, name)) for t in BOTH)
    assert str(mine.graph) == str(reference.graph)
    assert mine.code.strip() == reference.code.strip()
    assert [(n.op, n.name, [i.name for i in n.all_input_nodes], len(n.users)) for n in mine.graph.nodes] == [
        (n.op, n.name, [i.name for i in n.all_input_nodes], len(n.users)) for n in reference.graph.nodes]
    assert set(mine.state_dict()) == set(reference.state_dict())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "methods"])
def test_results(name):
    module = made(ours, name)
    traced = ours.fx.symbolic_trace(module)
    x = ours.arange(8.0).reshape(2, 4) - 3
    buffer = io.BytesIO()
    ours.save(traced, buffer)
    buffer.seek(0)
    for one in (traced, copy.deepcopy(traced), ours.load(buffer, weights_only=False)):
        results = one(x.clone()), ours.fx.Interpreter(one).run(x.clone()) if name != "constant" else one(x.clone())
        for result in results:
            wanted = module(x.clone())
            if not isinstance(wanted, tuple):
                result, wanted = (result,), (wanted,)
            for got, want in zip(result, wanted, strict=True):
                assert ours.equal(got, want)


def test_changing_a_graph():
    def run(t):
        traced = t.fx.symbolic_trace(made(t, "functions"))
        for node in traced.graph.nodes:
            if node.target is operator.add:
                with traced.graph.inserting_after(node):
                    new = traced.graph.call_function(t.mul, node.args)
                node.replace_all_uses_with(new)
                traced.graph.erase_node(node)
        traced.graph.lint()
        traced.recompile()
        traced.graph.eliminate_dead_code()
        return traced.code.strip(), traced(t.ones(2, 4))[0]

    mine, reference = run(ours), run(torch)
    assert mine[0] == reference[0]
    assert_same(mine[1], reference[1], "changed")


def test_a_place_to_insert_holds_without_a_block():
    def run(t):
        traced = t.fx.symbolic_trace(lambda x: x.sin().cos())
        graph = traced.graph
        sine = next(node for node in graph.nodes if node.target == "sin")
        place = graph.inserting_after(sine)
        sine.replace_all_uses_with(graph.call_function(t.neg, (sine,)), lambda user: user.target == "cos")
        with place:
            pass
        graph.call_function(t.abs, (sine,))
        return str(graph)

    assert run(ours) == run(torch)


def test_replace_pattern():
    def run(t):
        traced = t.fx.symbolic_trace(made(t, "functions"))
        found = t.fx.replace_pattern(traced, lambda x: t.relu(x), lambda x: t.sigmoid(x))
        return len(found), traced(t.ones(2, 4))[0]

    mine, reference = run(ours), run(torch)
    assert mine[0] == reference[0] == 1
    assert_same(mine[1], reference[1], "replaced")


def test_transformer():
    def run(t):
        class Swap(t.fx.Transformer):
            def call_function(self, target, args, kwargs):
                return super().call_function(t.sigmoid if target is t.relu else target, args, kwargs)

        traced = Swap(t.fx.symbolic_trace(made(t, "functions"))).transform()
        return [node.op for node in traced.graph.nodes], traced(t.ones(2, 4))[0]

    mine, reference = run(ours), run(torch)
    assert mine[0] == reference[0]
    assert_same(mine[1], reference[1], "transformed")


def _branches(t):
    class Branch(t.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    class Loop(t.nn.Module):
        def forward(self, x):
            return sum(row for row in x)

    class Length(t.nn.Module):
        def forward(self, x):
            return x * len(x)

    return Branch, Loop, Length


@pytest.mark.parametrize("number", range(3))
def test_what_cannot_be_traced(number):
    errors = []
    for t in BOTH:
        with pytest.raises(Exception) as caught:  # noqa: PT011  (both must be of one kind)
            t.fx.symbolic_trace(_branches(t)[number]())
        errors.append((caught.type.__name__, str(caught.value)[:30]))
    assert errors[0] == errors[1]


def test_concrete_arguments_and_functions():
    def run(t):
        def choose(x, double):
            return x * 2 if double else x

        traced = t.fx.symbolic_trace(choose, concrete_args={"double": True})
        return traced.code.strip()

    assert run(ours) == run(torch)


def test_functions_answer_as_before_after_tracing():
    before = ours.relu.__code__
    ours.fx.symbolic_trace(made(ours, "plain"))
    assert ours.relu.__code__ is before
    assert math.sqrt(4) == 2


def test_shapes_on_nodes():
    def program(t):
        passes = importlib.import_module(f"{t.__name__}.fx.passes.shape_prop")
        t.manual_seed(0)
        traced = t.fx.symbolic_trace(t.nn.Sequential(t.nn.Conv2d(3, 4, 3), t.nn.Flatten()))
        passes.ShapeProp(traced).propagate(t.randn(2, 3, 5, 5))
        notes = [node.meta["tensor_meta"] for node in traced.graph.nodes]
        with pytest.raises(RuntimeError, match="ShapeProp error for: node="):
            passes.ShapeProp(traced).propagate(t.randn(2))
        return [(tuple(one.shape), str(one.dtype), one.requires_grad, one.stride, str(one.memory_format))
                for one in notes], str(traced.graph)

    assert program(ours) == program(torch)
