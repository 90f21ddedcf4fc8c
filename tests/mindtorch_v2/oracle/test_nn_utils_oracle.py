"""Embedding bags, weight and spectral norms, parametrizations and stateless calls against PyTorch."""

from __future__ import annotations

import copy
import importlib
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import assert_same, check, check_error, data, make, ours, theirs, values  # noqa: E402
from nn_compare import Fixed, compare  # noqa: E402

INDICES = values([1, 2, 4, 1, 1, 0], "int64")
OFFSETS = values([0, 2, 2, 5], "int64")
# PyTorch takes the frequency of a wrong index unless all are equal.
TWICE = values([1, 2, 2, 1], "int64")

# -- embedding bags ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 1, -1])
@pytest.mark.parametrize("include_last_offset", [False, True])
def test_embedding_bag(mode: str, padding_idx: int | None, include_last_offset: bool) -> None:
    check(lambda t, w, i, o: t.nn.functional.embedding_bag(i, w, o, mode=mode, padding_idx=padding_idx,
                                                           include_last_offset=include_last_offset),
          data(5, 3), INDICES, values([0, 2, 2, 6], "int64") if include_last_offset else OFFSETS, second=False)
    check(lambda t, w, i: t.nn.functional.embedding_bag(i.view(2, 3), w, mode=mode, padding_idx=padding_idx),
          data(5, 3), INDICES, second=False)


def test_embedding_bag_weights_and_frequencies() -> None:
    check(lambda t, w, i, o, s: t.nn.functional.embedding_bag(i, w, o, mode="sum", per_sample_weights=s, padding_idx=2),
          data(5, 3), INDICES, OFFSETS, data(6), second=False)
    check(lambda t, w, i, s: t.nn.functional.embedding_bag(i.view(3, 2), w, mode="sum",
                                                           per_sample_weights=s.view(3, 2)),
          data(5, 3), INDICES, data(6), second=False)
    check(lambda t, w, i, o: t.nn.functional.embedding_bag(i, w, o, mode="sum", scale_grad_by_freq=True),
          data(5, 3), TWICE, values([0, 2], "int64"), second=False)
    check(lambda t, w, i, o: t.nn.functional.embedding_bag(i, w, o), data(5, 3), values([], "int64"),
          values([0, 0], "int64"), second=False)


@pytest.mark.parametrize("kwargs", [{}, {"mode": "max", "padding_idx": 1}, {"mode": "sum", "max_norm": 1.0},
                                    {"norm_type": 1.0, "max_norm": 0.5}], ids=str)
def test_embedding_bag_layer(kwargs: Any) -> None:
    compare(lambda t: t.nn.EmbeddingBag(5, 3, **kwargs), Fixed(INDICES), Fixed(OFFSETS))
    compare(lambda t: t.nn.EmbeddingBag.from_pretrained(t.eye(5), **kwargs, freeze=False), Fixed(INDICES),
            Fixed(OFFSETS))


@pytest.mark.parametrize("function", [
    lambda t, f, w, i, o: f(i.view(2, 3), w, o),
    lambda t, f, w, i, o: f(i, w),
    lambda t, f, w, i, o: f(i.view(1, 2, 3), w),
    lambda t, f, w, i, o: f(i, w, o, mode="mean", per_sample_weights=t.ones(6)),
    lambda t, f, w, i, o: f(i, w, o, mode="sum", per_sample_weights=t.ones(3)),
    lambda t, f, w, i, o: f(i, w, o, mode="sum", per_sample_weights=t.ones(6).double()),
    lambda t, f, w, i, o: f(i, w, o, mode="least"),
    lambda t, f, w, i, o: f(i, w, o, mode="max", scale_grad_by_freq=True),
    lambda t, f, w, i, o: f(i, w, o, mode="max", sparse=True),
    lambda t, f, w, i, o: f(i, w, o + 1),
    lambda t, f, w, i, o: f(i, w, o * 9),
    lambda t, f, w, i, o: f(i + 9, w, o),
    lambda t, f, w, i, o: f(i.float(), w, o),
    lambda t, f, w, i, o: f(i, w, o[None]),
    lambda t, f, w, i, o: f(i, w, o, padding_idx=7),
])
def test_embedding_bag_errors(function: Any) -> None:
    check_error(lambda t, w, i, o: function(t, t.nn.functional.embedding_bag, w, i, o), data(5, 3), INDICES, OFFSETS)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_pdist(p: float) -> None:
    check(lambda t, x: t.nn.functional.pdist(x, p), data(4, 3), second=False)
    check(lambda t, x: t.pdist(x, p), data(1, 3), second=False)


def test_pdist_errors() -> None:
    check_error(lambda t, x: t.pdist(x[0]), data(4, 3))
    check_error(lambda t, x: t.pdist(x, -1.0), data(4, 3))
    check_error(lambda t, x: t.pdist(x.int()), data(4, 3))


# -- weight norm and spectral norm by hooks ------------------------------------------------------------------------


def quietly(function: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return function()


@pytest.mark.parametrize("dim", [0, 1, None, -1])
def test_weight_norm(dim: int | None) -> None:
    compare(lambda t: quietly(lambda: t.nn.utils.weight_norm(t.nn.Linear(3, 4), dim=dim)), data(2, 3))


def test_weight_norm_second_gradient() -> None:
    # PyTorch takes the norms for constants where they are computed together with the weight, so its second gradient is
    # only right for inner dimensions.
    check(lambda t, v, g: t._weight_norm(v, g, 0), data(3, 2), data(3, 1), nodes=False, second=False)
    check(lambda t, v, g: t._weight_norm(v, g, 1), data(2, 3, 2), data(1, 3, 1), nodes=False)
    v, g = (make(ours, data(*shape, dtype="float64"), True) for shape in ((3, 2), (3, 1)))
    assert ours.autograd.gradgradcheck(lambda v, g: ours._weight_norm(v, g, 0), (v, g))
    check(lambda t, v: t.norm_except_dim(v, 2, 1), data(2, 3, 2), nodes=False)


def test_weight_norm_comes_and_goes() -> None:
    for t in (theirs, ours):
        with pytest.warns(FutureWarning, match="weight_norm` is deprecated in favor of"):
            layer = t.nn.utils.weight_norm(t.nn.Linear(3, 4))
        before = layer(t.ones(3)).tolist()
        with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
            quietly(lambda layer=layer, t=t: t.nn.utils.weight_norm(layer))
        t.nn.utils.remove_weight_norm(layer)
        assert list(layer.state_dict()) == ["bias", "weight"]
        assert layer(t.ones(3)).tolist() == pytest.approx(before)
        with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
            t.nn.utils.remove_weight_norm(layer)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kwargs", [{}, {"dim": 1, "n_power_iterations": 3}], ids=str)
def test_spectral_norm(training: bool, kwargs: Any) -> None:
    compare(lambda t: t.nn.utils.spectral_norm(t.nn.Linear(3, 4), **kwargs), data(2, 3), training=training)


def test_spectral_norm_comes_and_goes() -> None:
    found = []
    for t in (theirs, ours):
        t.manual_seed(2)
        layer = t.nn.utils.spectral_norm(t.nn.Linear(3, 4))
        for _ in range(5):
            layer(t.ones(3)).sum().backward()
        with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks"):
            t.nn.utils.spectral_norm(layer)
        with pytest.raises(ValueError, match="Expected n_power_iterations to be positive"):
            t.nn.utils.spectral_norm(t.nn.Linear(3, 4), n_power_iterations=0)
        meta = dict(layer.state_dict()._metadata)
        other = t.nn.utils.spectral_norm(t.nn.Linear(3, 4))
        other.load_state_dict(layer.state_dict())
        t.nn.utils.remove_spectral_norm(layer)
        with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
            t.nn.utils.remove_spectral_norm(layer)
        found.append((meta, list(layer.state_dict()), dict(layer.state_dict()._metadata),
                      [round(x, 4) for x in layer(t.ones(3)).tolist()], [round(x, 4) for x in other.weight_u.tolist()]))
    assert found[0] == found[1]


# -- parametrizations ----------------------------------------------------------------------------------------------


def symmetric(t: Any) -> Any:
    class Symmetric(t.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).t()

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    return Symmetric()


def doubled(t: Any) -> Any:
    class Doubled(t.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    return Doubled()


def parametrized(t: Any, *parametrizations: Any, name: str = "weight") -> Any:
    layer = t.nn.Linear(3, 3)
    for make_one in parametrizations:
        t.nn.utils.parametrize.register_parametrization(layer, name, make_one(t))
    return layer


@pytest.mark.parametrize("build", [
    lambda t: parametrized(t, symmetric),
    lambda t: parametrized(t, symmetric, doubled),
    lambda t: parametrized(t, doubled, name="bias"),
    lambda t: t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 3)),
    lambda t: t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 3), dim=None),
    lambda t: t.nn.utils.parametrizations.spectral_norm(t.nn.Linear(3, 3)),
    lambda t: t.nn.utils.parametrizations.spectral_norm(t.nn.Linear(3, 3), n_power_iterations=2, dim=1),
    lambda t: t.nn.utils.parametrizations.spectral_norm(t.nn.Linear(3, 3), "bias"),
])
@pytest.mark.parametrize("training", [True, False])
def test_parametrized_layers(build: Any, training: bool) -> None:
    compare(build, data(2, 3), training=training)


def test_parametrization_comes_and_goes() -> None:
    found = []
    for t in (theirs, ours):
        p = t.nn.utils.parametrize
        layer = parametrized(t, symmetric)
        seen: list[Any] = [p.is_parametrized(layer), p.is_parametrized(layer, "bias"), type(layer).__name__,
                           p.type_before_parametrizations(layer) is t.nn.Linear, isinstance(layer, t.nn.Linear)]
        layer.weight = t.ones(3, 3)
        seen += [layer.parametrizations.weight.original.tolist(), layer.weight.tolist()]
        twin = copy.deepcopy(layer)
        seen += [type(twin).__name__, twin.weight.tolist(), twin.parametrizations.weight.original is not
                 layer.parametrizations.weight.original]
        with pytest.raises(RuntimeError, match="only supported through state_dict"):
            pickle.dumps(layer)
        with p.cached():
            seen.append(layer.weight is layer.weight)
        seen.append(layer.weight is layer.weight)
        p.remove_parametrizations(layer, "weight")
        seen += [repr(layer), layer.weight.tolist(), type(layer) is t.nn.Linear,
                 isinstance(layer.weight, t.nn.Parameter)]
        third = parametrized(t, symmetric)
        third.weight = t.ones(3, 3)
        p.remove_parametrizations(third, "weight", leave_parametrized=False)
        seen += [third.weight.tolist(), list(third.state_dict())]
        two = t.nn.utils.parametrizations.weight_norm(t.nn.Linear(2, 2))
        with pytest.raises(ValueError, match="Cannot leave unparametrized"):
            p.remove_parametrizations(two, "weight", leave_parametrized=False)
        p.remove_parametrizations(two, "weight")
        seen += [list(two.state_dict()), two.weight.requires_grad, two.weight.is_leaf]
        found.append(seen)
    assert found[0] == found[1]


def test_parametrized_buffer_and_unsafe() -> None:
    found = []
    for t in (theirs, ours):
        layer = t.nn.BatchNorm1d(3)
        t.nn.utils.parametrize.register_parametrization(layer, "running_mean", doubled(t))
        layer.eval()
        t.nn.utils.parametrize.register_parametrization(layer, "weight", t.nn.Linear(3, 2), unsafe=True)
        found.append([list(layer.state_dict()), tuple(layer.weight.shape), layer.running_mean.tolist()])
    assert found[0] == found[1]


def test_old_weight_norm_checkpoint() -> None:
    for t in (theirs, ours):
        old = quietly(lambda t=t: t.nn.utils.weight_norm(t.nn.Linear(2, 2)))
        new = t.nn.utils.parametrizations.weight_norm(t.nn.Linear(2, 2))
        new.load_state_dict(old.state_dict())
        assert new.weight.tolist() == old.weight.tolist()


def constant(t: Any) -> Any:
    class Constant(t.nn.Module):
        def forward(self, x: Any) -> Any:
            return 3

    return Constant()


@pytest.mark.parametrize("function", [
    lambda t, p: p.register_parametrization(t.nn.Linear(3, 3), "strength", symmetric(t)),
    lambda t, p: p.register_parametrization(t.nn.Linear(3, 3), "bias", t.nn.Linear(3, 2)),
    lambda t, p: p.register_parametrization(t.nn.Linear(3, 3), "bias", constant(t)),
    lambda t, p: p.remove_parametrizations(t.nn.Linear(3, 3), "bias"),
    lambda t, p: setattr(parametrized(t, doubled), "weight", t.ones(3, 3)),
])
def test_parametrization_errors(function: Any) -> None:
    check_error(lambda t: function(t, t.nn.utils.parametrize))


# -- stateless -----------------------------------------------------------------------------------------------------


def test_functional_call() -> None:
    def function(t: Any, weight: Any, x: Any) -> Any:
        t.manual_seed(0)
        layer = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.BatchNorm1d(2))
        kept = layer[0].weight
        made = quietly(lambda: t.nn.utils.stateless.functional_call(layer, {"0.weight": weight}, x))
        assert layer[0].weight is kept
        return made

    check(function, data(2, 3), data(4, 3))


def test_functional_call_of_tied_weights() -> None:
    for t in (theirs, ours):
        layer = t.nn.Sequential(t.nn.Linear(2, 2, bias=False), t.nn.Linear(2, 2, bias=False))
        layer[1].weight = layer[0].weight
        call = t.nn.utils.stateless.functional_call
        x = t.ones(1, 2)
        assert quietly(lambda: call(layer, {"0.weight": t.ones(2, 2)}, x)).tolist() == [[4.0, 4.0]]  # noqa: B023
        other = quietly(lambda: call(layer, {"0.weight": t.ones(2, 2)}, x, tie_weights=False))  # noqa: B023
        assert other.tolist() == layer[1](t.full((1, 2), 2.0)).tolist()
        with pytest.raises(RuntimeError, match="Missing key"):
            quietly(lambda: call(t.nn.Linear(2, 2), {"weight": t.ones(2, 2)}, x, strict=True))  # noqa: B023
        with pytest.raises(ValueError, match="got multiple values for keys"):
            quietly(lambda: call(layer, {"0.weight": t.ones(2, 2), "1.weight": t.zeros(2, 2)}, x))  # noqa: B023


def test_functional_call_restores_after_an_error() -> None:
    layer = ours.nn.Linear(2, 2)
    kept = layer.weight
    with pytest.raises(RuntimeError):
        quietly(lambda: ours.nn.utils.stateless.functional_call(layer, {"weight": ours.ones(2, 2)}, ours.ones(1, 3)))
    assert layer.weight is kept


def test_norm_of_lstm_weight() -> None:
    results = []
    for t in (theirs, ours):
        t.manual_seed(3)
        layer = t.nn.utils.parametrizations.weight_norm(t.nn.GRU(3, 2), "weight_hh_l0")
        output = layer(make(t, data(4, 1, 3), False))[0]
        output.sum().backward()
        results.append([output, layer.parametrizations.weight_hh_l0.original0.grad])
    for got, want in zip(results[1], results[0], strict=True):
        assert_same(got, want, "normalised GRU")


PER_SAMPLE: dict[str, tuple[Any, tuple[int, ...]]] = {
    "linear": (lambda nn: nn.Linear(3, 2), (4, 3)), "deep linear": (lambda nn: nn.Linear(3, 2), (4, 5, 3)),
    "convolution": (lambda nn: nn.Conv2d(2, 3, 2), (3, 2, 4, 4)), "layer norm": (lambda nn: nn.LayerNorm(3), (4, 3)),
    "group norm": (lambda nn: nn.GroupNorm(2, 4), (3, 4, 5)),
    "instance norm": (lambda nn: nn.InstanceNorm1d(4, affine=True), (3, 4, 5)),
    "several": (lambda nn: nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 2)), (4, 3)),
}


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("case", PER_SAMPLE)
def test_gradients_of_each_sample(case: str, reduction: str) -> None:
    def run(torch: Any) -> list[Any]:
        calls = importlib.import_module(f"{torch.__name__}.nn.utils._per_sample_grad")
        make, shape = PER_SAMPLE[case]
        module = make(torch.nn).double()
        for number, one in enumerate(module.parameters()):
            one.data = torch.arange(one.numel(), dtype=torch.float64).view(one.shape).sin() + 0.1 * number
        x = torch.arange(math.prod(shape), dtype=torch.float64).view(shape).cos()
        made = calls.call_for_per_sample_grads(module, loss_reduction=reduction)(x)
        getattr(made.sin(), reduction)().backward()
        assert all(one.grad is None for one in module.parameters())
        with pytest.raises(RuntimeError, match="accumulates the gradients"):
            calls.call_for_per_sample_grads(module)
        return [made, *[one.grad_sample for one in module.parameters()]]

    for mine, other in zip(run(ours), run(theirs), strict=True):
        assert tuple(mine.shape) == tuple(other.shape)
        np.testing.assert_allclose(mine.detach().cpu().numpy(), other.detach().numpy(), rtol=1e-9, atol=1e-12)
