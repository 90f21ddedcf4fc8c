"""Modules against PyTorch: texts of reprs and errors, functional forms, backward hooks, gradient clipping."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import assert_same, check_error, data, make, ours, theirs, weights  # noqa: E402
from nn_compare import Build  # noqa: E402

REPRS: list[Build] = [
    lambda t: t.nn.ModuleList([t.nn.ReLU(), t.nn.ReLU(), t.nn.Sequential(t.nn.Tanh(), t.nn.Tanh())]),
    lambda t: t.nn.ModuleList(),
    lambda t: t.nn.ModuleDict({"a": t.nn.ReLU(inplace=True), "b": t.nn.Dropout(0.1)}),
    lambda t: t.nn.ParameterList([t.ones(2, 3), t.nn.Parameter(t.ones(1)), 3]),
    lambda t: t.nn.ParameterDict({"a": t.ones(2, 3), "b": t.nn.Parameter(t.ones(1)), "c": "x"}),
    lambda t: t.nn.Parameter(t.ones(2)),
    lambda t: t.nn.Parameter(t.ones(2, dtype=t.int64), requires_grad=False),
    lambda t: t.nn.Embedding(3, 2, padding_idx=0, max_norm=2.0, norm_type=1.0, scale_grad_by_freq=True, sparse=True),
    lambda t: t.nn.BCEWithLogitsLoss(pos_weight=t.ones(2)),
    lambda t: t.nn.Hardtanh(inplace=True),
    lambda t: t.nn.Threshold(1, 2, inplace=True),
    lambda t: t.nn.Sequential(),
    lambda t: t.nn.Module(),
]


@pytest.mark.parametrize("build", REPRS)
def test_repr(build: Build) -> None:
    assert repr(build(ours)) == repr(build(theirs))


def broken_load(torch: Any, change: Callable[[Any, Any], None]) -> None:
    """Load a changed state dict into a small net."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    state = net.state_dict()
    change(torch, state)
    net.load_state_dict(state)


@pytest.mark.parametrize("change", [
    lambda t, s: s.pop("0.weight"),
    lambda t, s: s.update({"2.weight": t.ones(1), "bare": t.ones(1), "0.extra": t.ones(1)}),
    lambda t, s: s.update({"0.weight": t.ones(5, 5), "1.running_mean": t.ones(2)}),
    lambda t, s: [s.pop("0.weight"), s.pop("1.num_batches_tracked"), s.update({"x": t.ones(1), "0.bias": t.ones(1)})],
    lambda t, s: s.update({"0.weight": 3}),
])
def test_load_error_texts(change: Any) -> None:
    texts = []
    for module in (theirs, ours):
        with pytest.raises(RuntimeError) as raised:
            broken_load(module, change)
        texts.append(str(raised.value))
    assert texts[1] == texts[0]


def test_batch_norm_reads_version_1() -> None:
    for module in (theirs, ours):
        net = module.nn.BatchNorm1d(3)
        state = {name: tensor for name, tensor in net.state_dict().items() if name != "num_batches_tracked"}
        assert str(net.load_state_dict(state)) == "<All keys matched successfully>"


def setter(name: str, value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda torch: setattr(torch.nn.Linear(2, 2), name, value(torch))


@pytest.mark.parametrize("action", [
    setter("weight", lambda t: t.ones(2)),
    setter("weight", lambda t: 3),
    lambda t: t.nn.Linear(2, 2).register_parameter("a.b", None),
    lambda t: t.nn.Linear(2, 2).register_parameter("forward", None),
    lambda t: t.nn.Linear(2, 2).register_parameter("x", 3),
    lambda t: t.nn.Linear(2, 2).register_buffer("weight", None),
    lambda t: t.nn.Linear(2, 2).register_buffer("x", "y"),
    lambda t: t.nn.Linear(2, 2).add_module("", t.nn.ReLU()),
    lambda t: t.nn.Linear(2, 2).add_module("x", 3),
    lambda t: t.nn.Linear(2, 2).missing,
    lambda t: t.nn.Linear(2, 2).get_parameter("missing"),
    lambda t: t.nn.Linear(2, 2).get_submodule("weight"),
    lambda t: t.nn.Linear(2, 2).to(t.int64),
    lambda t: t.nn.Linear(2, 2).train(3),
    lambda t: t.nn.Dropout(1.5),
    lambda t: t.nn.GroupNorm(2, 3),
    lambda t: t.nn.BatchNorm1d(3)(t.ones(3)),
    lambda t: t.nn.BatchNorm1d(3)(t.ones(1, 3)),
    lambda t: t.nn.BatchNorm2d(3)(t.ones(2, 3)),
    lambda t: t.nn.CircularPad1d(1)(t.ones(2, 3, 4, 5)),
    lambda t: t.nn.Embedding(3, 2, padding_idx=5),
    lambda t: t.nn.Unflatten(1, (2, "x")),
    lambda t: t.nn.TripletMarginLoss(margin=-1.0),
    lambda t: t.nn.functional.mse_loss(t.ones(2), t.ones(2), reduction="none of these"),
    lambda t: t.nn.functional.binary_cross_entropy(t.ones(2), t.ones(3)),
    lambda t: t.nn.functional.dropout(t.ones(2), -0.5),
    lambda t: t.nn.Sequential(t.nn.ReLU())[5],
    lambda t: t.nn.Module()(1),
])
def test_error_texts(action: Callable[[Any], Any]) -> None:
    texts = []
    for module in (theirs, ours):
        with pytest.raises(Exception) as raised:  # noqa: PT011
            action(module)
        texts.append((raised.type.__name__, re.sub(r"\s+", " ", str(raised.value))))
    assert texts[1] == texts[0]


def test_wrong_input_type() -> None:
    check_error(lambda torch: torch.nn.Linear(2, 2)(3))


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, defaults and kinds of a function's parameters."""
    return [(p.name, getattr(p.default, "__name__", p.default), p.kind)
            for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", [n for n in ours.nn.__all__ if inspect.isclass(getattr(ours.nn, n))])
def test_signature_of_layer(name: str) -> None:
    mine, expected = getattr(ours.nn, name), getattr(theirs.nn, name)
    assert parameters(mine.__init__) == parameters(expected.__init__)
    if mine.__dict__.get("forward") and name != "Module":
        assert parameters(mine.forward) == parameters(expected.forward)


@pytest.mark.parametrize("name", ours.nn.functional.__all__)
def test_signature_of_function(name: str) -> None:
    try:
        expected = parameters(getattr(theirs.nn.functional, name))
    except ValueError:
        pytest.skip("PyTorch's is built in and shows no signature")
    if [p[0] for p in expected] == ["args", "kwargs"]:
        pytest.skip("PyTorch chooses between two functions and shows no signature")
    assert parameters(getattr(ours.nn.functional, name)) == expected


def test_signatures_of_module_methods() -> None:
    # Other vendors' devices and compiler are no part of this runtime; forward takes anything on both.
    skipped = {"ipu", "mtia", "xpu", "T_destination", "forward", "call_super_init", "dump_patches"}
    for name in sorted(set(dir(theirs.nn.Module)) - skipped):
        if not name.startswith("_"):
            assert parameters(getattr(ours.nn.Module, name)) == parameters(getattr(theirs.nn.Module, name)), name


def test_direct_functions_exist_on_both() -> None:
    for name in ours.nn.functional.DIRECT:
        assert callable(getattr(theirs.nn.functional, name))
        assert callable(getattr(ours.nn.functional, name))


@pytest.mark.parametrize("function", [
    lambda F, x: F.normalize(x, dim=1),
    lambda F, x: F.normalize(x, p=1.0, dim=0),
    lambda F, x: F.softmax(x, 1, dtype=None),
    lambda F, x: F.gelu(x, approximate="tanh"),
    lambda F, x: F.pad(x, (1, 2)),
    lambda F, x: F.cosine_similarity(x, x + 1, dim=1),
    lambda F, x: F.logsigmoid(x),
    lambda F, x: F.rrelu(x * 1.0, 0.1, 0.3, training=False, inplace=True),
    lambda F, x: F.softplus(x, beta=2),
    lambda F, x: F.layer_norm(x, (4,)),
    lambda F, x: F.rms_norm(x, (4,)),
    lambda F, x: F.mse_loss(x, x * 2, weight=x.detach().abs()),
    lambda F, x: F.l1_loss(x, x * 2, weight=x.detach().abs(), reduction="sum"),
    lambda F, x: F.huber_loss(x, x * 2, weight=x.detach().abs()),
    lambda F, x: F.gumbel_softmax(x, hard=True),
    lambda F, x: F.gumbel_softmax(x, tau=0.5),
])
def test_functional(function: Callable[..., Any]) -> None:
    results = []
    for module in (theirs, ours):
        x = make(module, data(3, 4), True)
        module.manual_seed(5)
        out = function(module.nn.functional, x)
        grad = module.autograd.grad(out, x, weights(module, [out])[0])[0]
        results.append((out, grad))
    for got, want, label in zip(results[1], results[0], ("output", "gradient"), strict=True):
        assert_same(got, want, label)


def full_backward_trace(torch: Any) -> list[Any]:
    """What full backward hooks see in a two-layer net."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    seen: list[Any] = []
    for i, layer in enumerate(net):
        layer.register_full_backward_pre_hook(lambda m, go, i=i: seen.append((i, "pre", go[0])))
        layer.register_full_backward_hook(lambda m, gi, go, i=i: seen.append((i, "post", gi[0], go[0])))
    x = make(torch, data(4, 3), True)
    net(x).sum().backward()
    return [*seen, x.grad, net[0].weight.grad]


def test_full_backward_hooks() -> None:
    want, got = full_backward_trace(theirs), full_backward_trace(ours)
    assert len(got) == len(want)
    for mine, expected in zip(got, want, strict=True):
        pairs = zip(mine, expected, strict=True) if isinstance(expected, tuple) else [(mine, expected)]
        for a, b in pairs:
            assert_same(a, b, "hook")


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
@pytest.mark.parametrize("foreach", [None, False])
def test_clip_grad(norm_type: float, foreach: bool | None) -> None:
    results = []
    for module in (theirs, ours):
        parameters = [module.nn.Parameter(module.zeros(3)), module.nn.Parameter(module.zeros(2, 2)),
                      module.nn.Parameter(module.zeros(1))]
        parameters[0].grad = make(module, data(3), False)
        parameters[1].grad = make(module, data(2, 2), False)
        norm = module.nn.utils.clip_grad_norm_(parameters, 0.7, norm_type, foreach=foreach)
        clipped = [p.grad.clone() for p in parameters[:2]]
        module.nn.utils.clip_grad_value_(parameters, 0.2, foreach=foreach)
        results.append([norm, *clipped, *[p.grad for p in parameters[:2]]])
    for got, want in zip(results[1], results[0], strict=True):
        assert_same(got, want, "clipped")


def test_parameters_to_vector_and_back() -> None:
    for module in (theirs, ours):
        module.manual_seed(0)
        net = module.nn.Linear(3, 2)
        vector = module.nn.utils.parameters_to_vector(net.parameters())
        assert tuple(vector.shape) == (8,)
        module.nn.utils.vector_to_parameters(vector.detach() * 2, net.parameters())
        assert net.bias.tolist() == pytest.approx((vector[6:] * 2).tolist())
