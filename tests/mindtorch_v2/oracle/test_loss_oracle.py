"""Losses against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from harness import check, check_error, data, ours, theirs, values

from mindtorch_v2._dispatch.namespace import aten

REDUCTIONS = [0, 1, 2]


def functional(torch):
    return aten if torch is ours else theirs.ops.aten


def classes(*shape, count=3, seed=0):
    return values(np.random.default_rng(seed).integers(0, count, shape), "int64")


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_differences(name, reduction):
    def run(torch, x, y):
        return getattr(functional(torch), name)(x, y, reduction)

    second = name != "l1_loss"  # the oracle's second gradients of it are lazy zeros that NumPy cannot read
    for shape in ((3, 4), (), (1, 0), (2, 1, 3)):
        check(run, data(*shape, dtype="float64"), data(*shape, dtype="float64", seed=1), second=second)
    check(lambda torch, x, y: run(torch, x, y.expand(3, 4)), data(3, 4), data(4, seed=1), second=second)
    check(run, data(0, 3), data(0, 3), grad=False)
    check(lambda torch, x, y: run(torch, x.t(), y), data(3, 4), data(4, 3, seed=3), second=second)
    for dtype in ("float16", "bfloat16"):
        check(run, data(3, 4, dtype=dtype), data(3, 4, dtype=dtype, seed=1), second=False, tolerance=0.05)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("parameter", [0.5, 2.0])
def test_thresholds(reduction, parameter):
    for name in ("smooth_l1_loss", "huber_loss"):
        check(lambda torch, x, y, name=name: getattr(functional(torch), name)(x, y, reduction, parameter),
              data(5, dtype="float64"), data(5, dtype="float64", seed=1))
    check(lambda torch, x, y: functional(torch).smooth_l1_loss(x, y, reduction, 0.0), data(5), data(5, seed=1))


def test_mixed_dtypes():
    check(lambda torch, x, y: functional(torch).mse_loss(x, y), data(3), data(3, dtype="float64", seed=1))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction):
    x, y, w = (data(3, 4, dtype="float64", low=0.05, high=0.95, seed=i) for i in range(3))
    check(lambda torch, x, y: functional(torch).binary_cross_entropy(x, y, None, reduction), x, y,
          tolerance=1e-8)
    check(lambda torch, x, y, w: functional(torch).binary_cross_entropy(x, y, w.detach(), reduction), x, y, w,
          tolerance=1e-8)
    check(lambda torch, x, y: functional(torch).binary_cross_entropy(x, y.detach(), None, reduction),
          values([0.0, 1.0, 0.5]), values([1.0, 1.0, 0.0]), second=False)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_second_derivatives_of_certain_chances(reduction):
    def second(torch, x, y, start):
        loss = functional(torch).binary_cross_entropy(x, y, None, reduction)
        slope, = torch.autograd.grad(loss, x, start.expand_as(loss), create_graph=True)
        return torch.autograd.grad(slope, [x, start], torch.ones_like(slope))

    check(second, values([0.0, 1.0, 0.0, 0.5], "float64"), values([0.0, 1.0, 1.0, 0.3], "float64"),
          values(1.0, "float64"), second=False)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy_with_logits(reduction):
    x, y = data(3, 4, dtype="float64", low=-5, high=5), data(3, 4, dtype="float64", low=0, high=1)
    weight, positive = data(3, 4, dtype="float64", low=0, high=1, seed=1), data(4, dtype="float64", low=0, high=2)
    check(lambda torch, x, y: functional(torch).binary_cross_entropy_with_logits(x, y, None, None, reduction), x, y)
    check(lambda torch, x, y, w, p: functional(torch).binary_cross_entropy_with_logits(
        x, y, w.detach(), p.detach(), reduction), x, y, weight, positive)
    check(lambda torch, x, y, p: functional(torch).binary_cross_entropy_with_logits(
        x, y.detach(), None, p.detach(), reduction), x, y, positive)
    check(lambda torch, x, y: functional(torch).binary_cross_entropy_with_logits(x, y.detach(), None, None, reduction),
          values([100.0, -100.0, 1000.0]), values([0.0, 1.0, 1.0]))


NLL_SHAPES = [((3,), ()), ((4, 3), (4,)), ((2, 3, 4), (2, 4)), ((2, 3, 2, 2), (2, 2, 2)),
              ((2, 3, 2, 2, 2), (2, 2, 2, 2))]


@pytest.mark.parametrize("shapes", NLL_SHAPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll(shapes, reduction):
    x, target = data(*shapes[0]), classes(*shapes[1])
    weight = data(3, low=0.1, high=2)
    check(lambda torch, x, t: functional(torch).nll_loss_nd(x, t, None, reduction), x, target)
    check(lambda torch, x, t, w: functional(torch).nll_loss_nd(x, t, w.detach(), reduction), x, target, weight)
    check(lambda torch, x, t: functional(torch).nll_loss_nd(x, t, None, reduction, 1), x, target)
    check(lambda torch, x, t, w: functional(torch).nll_loss_nd(x, t, w.detach(), reduction, 0), x, target, weight)


def test_everything_ignored():
    check(lambda torch, x, t: functional(torch).nll_loss_nd(x, t, None, 1, 1), data(2, 3), values([1, 1], "int64"),
          second=False)
    check(lambda torch, x, t: functional(torch).nll_loss_nd(x, t, None, 2, -100), data(2, 3),
          values([-100, -100], "int64"), second=False)


@pytest.mark.parametrize("shapes", NLL_SHAPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(shapes, reduction, smoothing):
    x, target = data(*shapes[0], dtype="float64"), classes(*shapes[1])
    weight = data(3, dtype="float64", low=0.1, high=2)

    def run(torch, x, t, w=None, ignore=-100):
        return functional(torch).cross_entropy_loss(x, t, w, reduction, ignore, smoothing)

    check(run, x, target, nodes=False)
    check(lambda torch, x, t, w: run(torch, x, t, w.detach()), x, target, weight, nodes=False)
    check(lambda torch, x, t: run(torch, x, t, None, 1), x, classes(*shapes[1], seed=2), nodes=False)
    check(lambda torch, x, t, w: run(torch, x, t, w.detach(), 0), x, classes(*shapes[1], seed=2), weight, nodes=False,
          second=False)
    share = data(*shapes[0], dtype="float64", low=0, high=1, seed=4)
    check(run, x, share, nodes=False)
    check(lambda torch, x, t, w: run(torch, x, t, w.detach()), x, share, weight, nodes=False)


def test_cross_entropy_node_and_half():
    check(lambda torch, x, t: functional(torch).cross_entropy_loss(x, t), data(4, 3), classes(4))
    check(lambda torch, x, t: functional(torch).cross_entropy_loss(x, t), data(4, 3, dtype="bfloat16"), classes(4),
          second=False)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_kl_div(reduction):
    for log_target in (False, True):
        check(lambda torch, x, y, log=log_target: functional(torch).kl_div(x, y, reduction, log_target=log),
              data(3, 4, dtype="float64"), data(3, 4, dtype="float64", low=0.1, high=1, seed=1))
    check(lambda torch, x, y: functional(torch).kl_div(x, y.detach(), reduction), data(3), values([0.0, 0.5, 1.0]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margins(reduction):
    signs = values(np.random.default_rng(0).choice([-1.0, 1.0], (4,)), "float64")
    x, y = data(4, dtype="float64"), data(4, dtype="float64", seed=1)
    check(lambda torch, x, s: functional(torch).hinge_embedding_loss(x, s.detach(), 1.0, reduction), x, signs)
    check(lambda torch, x, s: functional(torch).soft_margin_loss(x, s.detach(), reduction), x, signs)
    check(lambda torch, x, y, s: functional(torch).margin_ranking_loss(x, y, s.detach(), 0.3, reduction), x, y, signs)
    rows = data(4, 3, dtype="float64"), data(4, 3, dtype="float64", seed=1)
    check(lambda torch, x, y, s: functional(torch).cosine_embedding_loss(x, y, s.detach(), 0.1, reduction), *rows,
          signs)
    third = data(4, 3, dtype="float64", seed=2)
    for swap in (False, True):
        check(lambda torch, a, p, n, swap=swap: functional(torch).triplet_margin_loss(
            a, p, n, 1.0, 2.0, 1e-6, swap, reduction), *rows, third)


@pytest.mark.parametrize("log_input", [False, True])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_poisson(log_input, full, reduction):
    check(lambda torch, x, y: functional(torch).poisson_nll_loss(x, y, log_input, full, 1e-8, reduction),
          data(5, dtype="float64", low=0.1, high=2), data(5, dtype="float64", low=0.5, high=4, seed=1), nodes=False)


def test_similarity_and_distance():
    for dim in (0, 1, -1):
        check(lambda torch, x, y, dim=dim: torch.cosine_similarity(x, y, dim=dim), data(3, 4), data(3, 4, seed=1))
    check(lambda torch, x, y: torch.cosine_similarity(x, y, dim=-1), data(3, 4), data(4, seed=1))
    check(lambda torch, x, y: torch.cosine_similarity(x, y.detach()), data(2, 2), values([[0.0, 0.0], [1.0, 1.0]]),
          second=False)
    for p in (1.0, 2.0, 3.0):
        check(lambda torch, x, y, p=p: torch.pairwise_distance(x, y, p), data(3, 4, dtype="float64"),
              data(3, 4, dtype="float64", seed=1), nodes=False, second=p != 1)
    check(lambda torch, x, y: torch.pairwise_distance(x, y, keepdim=True), data(3, 4), data(4, seed=1), nodes=False)


def test_probabilities_above_one():
    check_error(lambda torch, x, y: functional(torch).binary_cross_entropy(x, y), values([2.0]), values([1.0]))


def test_errors():
    nll = lambda torch, x, t: functional(torch).nll_loss_nd(x, t)
    check_error(nll, data(2, 3), values([0, 5], "int64"))
    check_error(nll, data(2, 3), values([0, -1], "int64"))
    check_error(nll, data(2, 3), values([0, 1], "int32"))
    check_error(nll, data(2, 3), values([0, 1], "float32"))
    check_error(nll, data(2, 3), values([0, 1, 2], "int64"))
    check_error(nll, data(2, 3, 4), classes(2, 5))
    check_error(lambda torch, x, t, w: functional(torch).nll_loss_nd(x, t, w), data(2, 3), classes(2), data(4))
    entropy = lambda torch, x, t, *rest: functional(torch).cross_entropy_loss(x, t, *rest)
    check_error(entropy, data(2, 3), classes(2), data(4))
    check_error(entropy, data(2, 3), classes(3))
    check_error(entropy, data(2, 3), values([0, 5], "int64"))
    check_error(entropy, data(2, 3), classes(2), None, 1, -100, 2.0)
    check_error(entropy, data(2, 3), classes(2, 3))
    check_error(lambda torch, x, y: functional(torch).mse_loss(x, y), data(2, 3), data(2, 4))
    check_error(lambda torch, x, y: functional(torch).mse_loss(x, y), data(3, dtype="int64"), data(3, dtype="int64"))
    check_error(lambda torch, x: functional(torch).smooth_l1_loss(x, x, 1, -1.0), data(3))
    check_error(lambda torch, x: functional(torch).huber_loss(x, x, 1, -1.0), data(3))
    check_error(lambda torch, x, y: torch.cosine_similarity(x, y), data(2, 3), data(2, 4))
