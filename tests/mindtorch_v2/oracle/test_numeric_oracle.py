"""Covariance, finite differences, parts of floats, segments, norms of slices, grids of bins, and torch.<loss>."""

from __future__ import annotations

import numpy as np
import pytest
from harness import check, check_error, data, ours, theirs, values

FLOATS = ["float32", "float64", "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_frexp(dtype):
    check(lambda torch, x: torch.frexp(x), data(3, 4, dtype=dtype))
    check(lambda torch, x: x.frexp(), values([0.0, -0.0, 1.0, -3.5, 1e-30, float("inf"), float("nan")], dtype),
          grad=False)
    check(lambda torch, x: torch.frexp(x).exponent, data(0, dtype=dtype), grad=False)
    check_error(lambda torch, x: torch.frexp(x), data(3, dtype="int64"))


def test_float_power_in_place():
    check(lambda torch, x: x.clone().float_power_(2), data(3, dtype="float64"))
    check(lambda torch, x, y: x.float_power_(y), data(3, dtype="float64", low=0.5), data(3), grad=False)
    check(lambda torch, x: x.float_power_(2.5), data(3, dtype="complex128"), grad=False, tolerance=1e-10)
    check_error(lambda torch, x: x.float_power_(2), data(3))
    check_error(lambda torch, x: x.float_power_(2), data(3, dtype="int64"))


def test_fill():
    check(lambda torch, x: torch.fill(x, 2.5), data(3, 4))
    check(lambda torch, x, v: torch.fill(x, v), data(3, 4), values(2.0))
    check(lambda torch, x: torch.fill(x, 3), data(3, dtype="int64"))
    check_error(lambda torch, x, v: torch.fill(x, v), data(3, 4), data(2))


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (9, 3), (4, 4, 4), (2, 2), (1, 7)])
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_fill_diagonal(shape, wrap, turned):
    if wrap and turned and shape == (1, 7):
        pytest.skip("PyTorch reaches beyond the storage of a column that is wrapped around")

    def run(torch, x):
        y = x * 1
        if turned:
            y = y.transpose(0, 1)
        y.fill_diagonal_(7, wrap)
        return y * 1

    check(run, data(*shape), nodes=False)


def test_fill_diagonal_errors():
    check_error(lambda torch, x: x.fill_diagonal_(1), data(3))
    check_error(lambda torch, x: x.fill_diagonal_(1), data(3, 4, 3))


def test_sum_to_size():
    check(lambda torch, x: x.sum_to_size(1, 4), data(3, 4))
    check(lambda torch, x: x.sum_to_size((4,)), data(2, 3, 4), nodes=False)
    check(lambda torch, x: x.sum_to_size(3, 1), data(2, 3, 4), nodes=False)
    check(lambda torch, x: x.sum_to_size(3, 4), data(3, 4))
    check_error(lambda torch, x: x.sum_to_size(2, 4), data(3, 4))
    check_error(lambda torch, x: x.sum_to_size(5, 3, 4), data(3, 4))


def test_is_nonzero_and_nonzero_static():
    check(lambda torch, x: torch.is_nonzero(x), values([2.0]))
    check(lambda torch, x: x.is_nonzero(), values(0))
    check_error(lambda torch, x: torch.is_nonzero(x), data(2))
    check_error(lambda torch, x: torch.is_nonzero(x), data(0))
    for size in (0, 2, 5):
        check(lambda torch, x, size=size: torch.nonzero_static(x, size=size), values([[1, 0, 2], [0, 3, 0]], "int64"))
        check(lambda torch, x, size=size: x.nonzero_static(size=size, fill_value=9), values([1.0, 0.0, 2.0]))
    check_error(lambda torch, x: torch.nonzero_static(x, size=-1), data(3))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("p", [1, 2, 3, 0.5])
def test_renorm(dtype, p):
    tolerance = 1e-3 if dtype == "float32" else 1e-6
    second = dtype == "float64" and p in (1, 2, 3)
    check(lambda torch, x: torch.renorm(x, p, 0, 1.0), data(3, 4, dtype=dtype), tolerance=tolerance, second=second)
    check(lambda torch, x: x.renorm(p, -1, 5.0), data(3, 2, 4, dtype=dtype), tolerance=tolerance, second=second)
    check(lambda torch, x: (x * 1).renorm_(p, 1, 1.0), data(3, 4, dtype=dtype), tolerance=tolerance, second=False)


def test_renorm_edges():
    check(lambda torch, x: torch.renorm(x, float("inf"), 0, 1.0), data(3, 4), grad=False)
    check(lambda torch, x: torch.renorm(x, 2, 0, 0.0), data(3, 4), grad=False)
    check(lambda torch, x: torch.renorm(x, 2, 0, 1.0), data(3, 4, dtype="float16"), grad=False)
    check_error(lambda torch, x: torch.renorm(x, 2, 5, 1.0), data(3, 4))
    check_error(lambda torch, x: torch.renorm(x, 2, 0, 1.0), data(3))
    check_error(lambda torch, x: torch.renorm(x, -2, 0, 1.0), data(3, 4))
    check_error(lambda torch, x: torch.renorm(x, 2, 0, -1.0), data(3, 4))


@pytest.mark.filterwarnings("ignore:at.*_norm is deprecated")
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_norms(dtype):
    check(lambda torch, x: torch.frobenius_norm(x, dim=(0, 1)), data(3, 4, dtype=dtype), nodes=False)
    check(lambda torch, x: torch.frobenius_norm(x, dim=1, keepdim=True), data(3, 4, dtype=dtype), nodes=False)
    check(lambda torch, x: torch.nuclear_norm(x), data(3, 4, dtype=dtype), tolerance=1e-4, second=False, nodes=False)
    check(lambda torch, x: torch.nuclear_norm(x, dim=(0, 2), keepdim=True), data(3, 2, 4, dtype=dtype), tolerance=1e-4,
          second=False, nodes=False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
def test_covariance(dtype):
    tolerance = 1e-4 if dtype in ("float32", "int64") else 1e-10
    for shape in ((3, 5), (5,), (1, 4)):
        check(lambda torch, x: torch.cov(x), data(*shape, dtype=dtype), tolerance=tolerance)
        check(lambda torch, x: x.cov(correction=0), data(*shape, dtype=dtype), tolerance=tolerance)
    check(lambda torch, x, f: torch.cov(x, fweights=f), data(3, 5, dtype=dtype), values([1, 2, 1, 3, 2], "int64"),
          tolerance=tolerance)
    check(lambda torch, x, f, a: torch.cov(x, correction=2, fweights=f, aweights=a), data(3, 5, dtype=dtype),
          values([1, 2, 1, 3, 2], "int64"), values([0.5, 1.0, 2.0, 0.1, 0.3], "float64"), tolerance=tolerance)
    if dtype != "complex128":
        check(lambda torch, x: torch.corrcoef(x), data(3, 5, dtype=dtype), tolerance=tolerance)
    else:
        check(lambda torch, x: x.corrcoef(), data(3, 5, dtype=dtype), grad=False, tolerance=tolerance)
    check(lambda torch, x: torch.corrcoef(x), data(5, dtype=dtype), tolerance=tolerance, second=False)


def test_covariance_errors():
    check_error(lambda torch, x: torch.cov(x), data(2, 2, 2))
    check_error(lambda torch, x: torch.corrcoef(x), data(2, 2, 2))
    check_error(lambda torch, x, f: torch.cov(x, fweights=f), data(2, 3), data(3))
    check_error(lambda torch, x, f: torch.cov(x, fweights=f), data(2, 3), data(4, dtype="int64"))
    check_error(lambda torch, x, f: torch.cov(x, fweights=f), data(2, 3), values([1, -1, 1], "int64"))
    check_error(lambda torch, x: torch.cov(x), data(2, 2, dtype="bool"))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
def test_gradient(order, dtype):
    check(lambda torch, x: torch.gradient(x, edge_order=order), data(5, dtype=dtype), nodes=False)
    check(lambda torch, x: torch.gradient(x, spacing=0.5, edge_order=order), data(4, 5, dtype=dtype), nodes=False)
    check(lambda torch, x: torch.gradient(x, spacing=[2.0, 0.5], edge_order=order), data(4, 5, dtype=dtype),
          nodes=False)
    check(lambda torch, x: torch.gradient(x, dim=1, edge_order=order), data(4, 5, dtype=dtype), nodes=False)
    check(lambda torch, x: torch.gradient(x, dim=(2, 0), edge_order=order), data(4, 3, 5, dtype=dtype), nodes=False)
    if dtype != "int64":
        check(lambda torch, x: torch.gradient(x, spacing=(torch.tensor([0.0, 1.0, 3.0, 3.5]),), dim=0,
                                              edge_order=order), data(4, 2, dtype=dtype), nodes=False, tolerance=1e-4)


def test_gradient_errors():
    check_error(lambda torch, x: torch.gradient(x), data(1))
    check_error(lambda torch, x: torch.gradient(x, edge_order=2), data(2))
    check_error(lambda torch, x: torch.gradient(x, edge_order=3), data(5))
    check_error(lambda torch, x: torch.gradient(x, spacing=[1.0]), data(5, 5))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod", "amax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_segment_reduce(reduce, dtype):
    check(lambda torch, x: torch.segment_reduce(x, reduce, lengths=torch.tensor([2, 1, 3])), data(6, 2, dtype=dtype),
          second=False)
    check(lambda torch, x: torch.segment_reduce(x, reduce, offsets=torch.tensor([0, 2, 6])), data(6, dtype=dtype),
          second=False)
    check(lambda torch, x: torch.segment_reduce(x, reduce, lengths=torch.tensor([[1, 2, 3], [2, 0, 4]]), axis=1),
          data(2, 6, 3, dtype=dtype), grad=False)
    check(lambda torch, x: torch.segment_reduce(x, reduce, lengths=torch.tensor([4, 2]), initial=1.5),
          data(6, dtype=dtype), grad=False)


def test_segment_reduce_errors():
    check_error(lambda torch, x: torch.segment_reduce(x, "foo", lengths=torch.tensor([1, 2])), data(3))
    check_error(lambda torch, x: torch.segment_reduce(x, "sum"), data(3))
    check_error(lambda torch, x: torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 1])), data(3))


def test_histogramdd():
    points = data(20, 2, low=0, high=1)
    check(lambda torch, x: torch.histogramdd(x, bins=[3, 4]), points, grad=False)
    check(lambda torch, x: torch.histogramdd(x, bins=3, range=[0.0, 1.0, 0.2, 0.9]), points, grad=False)
    check(lambda torch, x: torch.histogramdd(x, bins=[2, 2], density=True), points, grad=False)
    check(lambda torch, x, w: torch.histogramdd(x, bins=[2, 3], weight=w), points, data(20, low=0), grad=False)
    check(lambda torch, x: torch.histogramdd(x, bins=[torch.tensor([0.0, 0.5, 1.0]), torch.tensor([0.0, 0.3, 1.0])]),
          points, grad=False)
    check(lambda torch, x: torch.histogramdd(x, bins=[3, 4]).hist, data(2, 5, 2), grad=False)
    check_error(lambda torch, x: torch.histogramdd(x, bins=[3, 4, 5]), points)


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_range():
    for given in ((1, 4), (1, 4, 0.5), (0, 1, 0.3), (5, 1, -2), (2, 2)):
        check(lambda torch, given=given: torch.range(*given))
    check(lambda torch: torch.range(1, 5, dtype=torch.int64))
    check_error(lambda torch: torch.range(3, 1))
    check_error(lambda torch: torch.range(3, 1, 0))


def test_empty_permuted():
    for torch in (ours, theirs):
        made = torch.empty_permuted((2, 3, 4), (1, 2, 0))
        assert tuple(made.shape) == (2, 3, 4)
        assert tuple(made.stride()) == (1, 8, 2)
    check_error(lambda torch: torch.empty_permuted((2, 3), (0, 0)), words=False)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses_as_torch_functions(reduction):
    x, y, z = data(4, 3), data(4, 3, seed=1), data(4, 3, seed=2)
    signs = values([1, -1, 1, -1], "int64")
    check(lambda torch, x, t: torch.binary_cross_entropy_with_logits(x, t.detach().abs(), None, None, reduction), x, y)
    check(lambda torch, x, t: torch.kl_div(x, t.detach().abs(), reduction), x, y, nodes=False)
    check(lambda torch, x, t: torch.kl_div(x, t.detach(), reduction, log_target=True), x, y, nodes=False)
    check(lambda torch, x, y, s: torch.cosine_embedding_loss(x, y, s, 0.1, reduction), x, y, signs, nodes=False)
    check(lambda torch, x, s: torch.hinge_embedding_loss(x, s, 1.0, reduction), data(4), signs, nodes=False)
    check(lambda torch, x, y, s: torch.margin_ranking_loss(x, y, s, 0.3, reduction), data(4), data(4, seed=1), signs,
          nodes=False)
    check(lambda torch, x, t: torch.poisson_nll_loss(x, t.detach().abs(), True, True, 1e-8, reduction), x, y,
          nodes=False)
    check(lambda torch, x, y, z: torch.triplet_margin_loss(x, y, z, reduction=reduction), x, y, z, nodes=False,
          second=False)


def test_segments_with_ties_share_the_gradient():
    x = ours.tensor([1.0, 1.0, 0.0], requires_grad=True)
    ours.segment_reduce(x, "max", lengths=ours.tensor([3])).sum().backward()
    assert np.allclose(x.grad.numpy(), [0.5, 0.5, 0.0])
