"""Sorting, searching and counting against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from harness import check, check_error, data, values

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

NAN, INF = float("nan"), float("inf")
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8"]
MIXED = values([[3.0, NAN, 1.0, INF, 1.0], [2.0, 2.0, -INF, NAN, 0.0]])


def distinct(*shape: int, dtype: str = "float32"):
    """Contents without ties, so that positions are determined."""
    count = int(np.prod(shape))
    return values(np.random.default_rng(count).permutation(count).reshape(shape) - (count // 2) * (dtype != "uint8"),
                  dtype)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(6,), (3, 4), (2, 3, 4), (), (0,), (2, 0)])
def test_sort(shape, descending):
    for dim in range(-max(len(shape), 1), max(len(shape), 1)):
        check(lambda torch, x, dim=dim: torch.sort(x, dim, descending), data(*shape), second=0 not in shape)
        check(lambda torch, x, dim=dim: torch.argsort(x, dim, descending), data(*shape), grad=False)
        check(lambda torch, x, dim=dim: x.sort(dim=dim, descending=descending, stable=True), data(*shape),
              second=False)


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_sort_dtypes(dtype):
    for descending in (False, True):
        check(lambda torch, x, d=descending: torch.sort(x, dim=1, descending=d, stable=True),
              data(3, 7, dtype=dtype), second=False)
        check(lambda torch, x, d=descending: x.argsort(descending=d, stable=True), data(3, 7, dtype=dtype), grad=False)


def test_sort_special():
    for descending in (False, True):
        check(lambda torch, x, d=descending: torch.sort(x, 1, d), MIXED, second=False)
        check(lambda torch, x, d=descending: torch.sort(x.t(), 0, d), MIXED, second=False)
    check(lambda torch, x: torch.msort(x), data(4, 3))
    check(lambda torch, x: torch.sort(x, out=(torch.empty(4), torch.empty(4, dtype=torch.int64))), data(4), grad=False)
    check_error(lambda torch, x: torch.sort(x), data(3, dtype="complex64"))
    check_error(lambda torch, x: torch.sort(x, 2), data(3))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_sort_of_many_elements_keeps_ties_in_order(dtype, descending):
    many = data(7, 300, dtype=dtype) if dtype in ("float32", "float64") else data(7, 300, dtype=dtype, low=-4, high=4)
    check(lambda torch, x: torch.sort(x, dim=1, descending=descending, stable=True), many, second=False)
    check(lambda torch, x: torch.sort(x.t(), dim=0, descending=descending, stable=True), many, second=False)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_of_many_special_values(descending):
    zeros = np.resize([0.0, -0.0, NAN, -NAN, INF, -INF, 1.0, -1.0, 1e-45, -1e-45], 1000)
    check(lambda torch, x: torch.sort(x, stable=True, descending=descending), values(zeros), second=False)
    far = np.resize([2**63 - 1, -(2**63), 0, -1, 1], 1000)
    for numbers in (far, far // 4096, far // 2**40):
        check(lambda torch, x: torch.sort(x, stable=True, descending=descending), values(numbers, "int64"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
def test_ranks_in_many_elements(dtype):
    many = distinct(2, 1000, dtype=dtype) if dtype != "uint8" else distinct(1, 200, dtype=dtype)
    for k in (1, 3, 150):
        check(lambda torch, x, k=k: torch.topk(x, k), many, second=False)
        check(lambda torch, x, k=k: torch.topk(x, k, largest=False), many, second=False)
        check(lambda torch, x, k=k: torch.kthvalue(x, k), many, second=False)
    check(lambda torch, x: torch.median(x, 1), many, second=False)
    check(lambda torch, x: torch.median(x), many, second=False)
    check(lambda torch, x: torch.topk(x, 1, largest=False), MIXED, second=False)


@pytest.mark.parametrize("make", [
    lambda torch: torch.ones(3, 5).t(), lambda torch: torch.ones(2, 3, 4).permute(2, 0, 1),
    lambda torch: torch.ones(4, 6)[:, ::2], lambda torch: torch.ones(6, 4)[::2].t(),
    lambda torch: torch.ones(30, 20).t(), lambda torch: torch.ones(1, 5).expand(3, 5),
])
def test_sorted_elements_lie_in_memory_as_the_array_does(make):
    for call in (lambda torch, x: torch.sort(x, 0), lambda torch, x: torch.sort(x, 1, descending=True),
                 lambda torch, x: torch.topk(x, 2, 1), lambda torch, x: torch.topk(x, 2, 0)):
        strides = [[made.stride() for made in call(torch, make(torch))] for torch in (ours, theirs)]
        assert strides[0] == strides[1]


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_topk(dtype, largest):
    for shape, dim in (((9,), 0), ((4, 6), 1), ((4, 6), 0), ((4, 6), -2)):
        check(lambda torch, x, dim=dim: torch.topk(x, 3, dim, largest), distinct(*shape, dtype=dtype), second=False)


def test_topk_more():
    check(lambda torch, x: torch.topk(x, 2), data(3, 5))
    check(lambda torch, x: x.topk(k=1, dim=0, largest=False, sorted=True), data(3, 5))
    check(lambda torch, x: x.topk(5, largest=False), distinct(3, 200), second=False)
    check(lambda torch, x: x.topk(5), distinct(3, 200), second=False)
    check(lambda torch, x: x.topk(3, 0), distinct(200, 2), second=False)
    check(lambda torch, x: x.topk(0), data(3, 5), grad=False)
    check(lambda torch, x: x.topk(1), data(), second=False)
    check(lambda torch, x: x.topk(2), values([[1.0, NAN, 3.0], [4.0, 2.0, INF]]), second=False)
    check_error(lambda torch, x: x.topk(9), data(3, 5))
    check_error(lambda torch, x: x.topk(1), data(3, dtype="bool"))


def test_topk_of_many_breaks_ties_by_position():
    x = ours.tensor([1.0, 2.0, 2.0, 0.0] * 50)
    assert x.topk(3).values.tolist() == [2.0, 2.0, 2.0]
    chosen = x.topk(3).indices.tolist()
    assert chosen == sorted(chosen)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kthvalue(dtype):
    for k in (1, 3, 5):
        check(lambda torch, x, k=k: torch.kthvalue(x, k), distinct(4, 5, dtype=dtype), second=False)
        check(lambda torch, x, k=k: x.kthvalue(k, 0, True), distinct(5, 4, dtype=dtype), second=False)
    check_error(lambda torch, x: x.kthvalue(0), data(3, dtype=dtype))
    check_error(lambda torch, x: x.kthvalue(4), data(3, dtype=dtype))


def test_kthvalue_grad():
    check(lambda torch, x: torch.kthvalue(x, 2, dim=0), data(3, 4))


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
@pytest.mark.parametrize("shape", [(12,), (3, 4), (), (0,), (2, 3, 2)])
def test_unique(shape, dtype):
    for inverse in (False, True):
        for counts in (False, True):
            check(lambda torch, x, i=inverse, c=counts: torch.unique(x, return_inverse=i, return_counts=c),
                  data(*shape, dtype=dtype), grad=False)
            check(lambda torch, x, i=inverse, c=counts: x.unique_consecutive(return_inverse=i, return_counts=c),
                  data(*shape, dtype=dtype), grad=False)


def test_unique_special():
    check(lambda torch, x: torch.unique(x, return_inverse=True, return_counts=True), MIXED, grad=False)
    check(lambda torch, x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), MIXED, grad=False)
    check_error(lambda torch, x: torch.unique(x.requires_grad_()).sum().backward(), data(4))
    check_error(lambda torch, x: torch.unique(x), data(3, dtype="complex64"))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_dim(dim):
    rows = values([[1, 0, 1, 1], [0, 2, 0, 0], [1, 0, 1, 1], [1, 0, 1, 0]], "int64")
    check(lambda torch, x: torch.unique(x, dim=dim, return_inverse=True, return_counts=True), rows)
    check(lambda torch, x: torch.unique(x.float(), dim=dim), rows)
    check(lambda torch, x: torch.unique_consecutive(x, dim=dim, return_inverse=True, return_counts=True), rows)
    check_error(lambda torch, x: torch.unique(x, dim=0), data(2, 0))
    check(lambda torch, x: torch.unique(x, dim=1, return_inverse=True, return_counts=True), data(2, 0), grad=False)
    check(lambda torch, x: torch.unique(x, dim=dim, return_counts=True), data(3, 4, 2, dtype="bool"))


def test_bincount():
    whole = values([1, 4, 4, 0, 2], "int64")
    check(lambda torch, x: torch.bincount(x), whole)
    check(lambda torch, x: x.bincount(minlength=8), whole)
    for dtype in ("float32", "float64", "int64", "float16"):
        check(lambda torch, x, w: torch.bincount(x, w.detach()), whole, data(5, dtype=dtype), grad=False)
    check(lambda torch, x: torch.bincount(x, minlength=2), data(0, dtype="int64"))
    check_error(lambda torch, x: torch.bincount(-x), whole)
    check_error(lambda torch, x: torch.bincount(x), data(3))
    check_error(lambda torch, x, w: torch.bincount(x, w), whole, data(3))
    check_error(lambda torch, x: torch.bincount(x, minlength=-1), whole)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histograms(dtype):
    many = data(40, 5, dtype=dtype)
    check(lambda torch, x: torch.histc(x), many, grad=False)
    check(lambda torch, x: x.histc(7, -1, 1.5), many, grad=False)
    check(lambda torch, x: torch.histc(x, 4), values([1.0, 1.0], dtype), grad=False)
    check(lambda torch, x: torch.histc(x, 4), data(0, dtype=dtype), grad=False)
    check(lambda torch, x: torch.histogram(x, 6), many, grad=False)
    check(lambda torch, x: torch.histogram(x, 6, range=(-1.0, 1.0), density=True), many, grad=False)
    check(lambda torch, x, w: torch.histogram(x, 6, weight=w), many,
          data(40, 5, dtype=dtype, seed=3, low=0), grad=False)
    check(lambda torch, x, e: torch.histogram(x, e), many, values([-1.0, 0.0, 0.5, 2.0], dtype), grad=False)
    check_error(lambda torch, x: torch.histc(x, 0), many)
    check_error(lambda torch, x: torch.histc(x, 3, 4, 1), many)
    check_error(lambda torch, x: torch.histc(x), data(3, dtype="int64"))


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(right):
    line = values([1.0, 2.0, 2.0, 3.0, 5.0])
    wanted = values([[0.0, 1.0, 2.0], [2.5, 5.0, 9.0], [NAN, INF, -INF]])
    check(lambda torch, s, x: torch.searchsorted(s, x, right=right), line, wanted, grad=False)
    check(lambda torch, s: torch.searchsorted(s, 2, right=right), line, grad=False)
    check(lambda torch, s, x: torch.searchsorted(s, x, right=right, out_int32=True), line, wanted, grad=False)
    rows = values([[1.0, 2.0, 2.0, 3.0], [0.0, 0.0, 4.0, 5.0], [1.0, 5.0, 6.0, 9.0]])
    check(lambda torch, s, x: torch.searchsorted(s, x, right=right), rows, wanted, grad=False)
    check(lambda torch, s, x: torch.searchsorted(s, x.long(), right=right), line, values([[0, 2], [3, 7]], "int64"),
          grad=False)
    check(lambda torch, s, x: torch.bucketize(x, s, right=right), line, wanted, grad=False)
    check(lambda torch, s: torch.bucketize(2.0, s, right=right), line, grad=False)
    check(lambda torch, s, x: torch.searchsorted(s.flip(0), x, right=right, sorter=torch.tensor([4, 3, 2, 1, 0])),
          line, wanted, grad=False)


def test_searchsorted_errors():
    line, rows = data(4), data(3, 4)
    check_error(lambda torch, s, x: torch.searchsorted(s, x), rows, data(2, 4))
    check_error(lambda torch, s, x: torch.searchsorted(s, x, side="bad"), line, line)
    check_error(lambda torch, s, x: torch.searchsorted(s, x, side="left", right=True), line, line)
    check_error(lambda torch, s: torch.searchsorted(s, 2), rows)
    check_error(lambda torch, s, x: torch.bucketize(x, s), rows, line)
    check(lambda torch, s, x: torch.searchsorted(s, x, side="right"), values([1.0, 2.0]), line, grad=False)


@pytest.mark.parametrize("invert", [False, True])
def test_isin(invert):
    some = values([[1, 2], [3, 4]], "int64")
    check(lambda torch, x, y: torch.isin(x, y, invert=invert), some, values([2, 4, 9], "int64"))
    check(lambda torch, x, y: torch.isin(x, y.float(), invert=invert), some, values([2, 4, 9], "int64"))
    check(lambda torch, x: torch.isin(x, 3, invert=invert), some)
    check(lambda torch, x: torch.isin(3, x, invert=invert), some)
    check(lambda torch, x: torch.isin(x, x, invert=invert), MIXED, grad=False)
    check(lambda torch, x: torch.isin(x, torch.empty(0), invert=invert), MIXED, grad=False)
    check_error(lambda torch, x: torch.isin(x, [1]), some, words=False)
