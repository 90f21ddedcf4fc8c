"""gather, scatter, index_*, take, put, masks, triangles and diagonals against PyTorch."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check, check_error, data, values  # noqa: E402

DTYPES = ["float32", "float64", "bfloat16", "int64", "uint8", "complex64"]
# (shape of self, dim, index, shape of src)
PLACES = [
    ((3, 4), 0, [[0, 1, 2, 0], [2, 2, 0, 1]], (2, 4)),
    ((3, 4), 1, [[0, 3], [1, 1], [2, 0]], (3, 2)),
    ((3, 4), -1, [[3]], (1, 1)),
    ((5,), 0, [0, 0, 4, 1, 1, 1], (6,)),
    ((2, 3, 4), 1, [[[0, 1], [2, 2]]], (1, 2, 2)),
    ((3,), 0, 1, ()),
    ((3, 4), 0, [], (0,)),
]


def long(torch, content):
    return torch.tensor(content, dtype=torch.int64)


@pytest.mark.parametrize(("shape", "dim", "index", "source"), PLACES)
def test_gather(shape, dim, index, source):
    check(lambda torch, x: torch.gather(x, dim, long(torch, index)), data(*shape))
    check(lambda torch, x: x.transpose(0, -1).gather(dim, long(torch, index)), data(*([5] * len(shape))))


@pytest.mark.parametrize(("shape", "dim", "index", "source"), PLACES)
def test_scatter(shape, dim, index, source):
    check(lambda torch, x: x.scatter(dim, long(torch, index), 1.5), data(*shape))
    check(lambda torch, x: (x * 1).scatter_(dim, long(torch, index), 2), data(*shape))
    if index in ([], 1, [[3]]):  # which of several values stays is not defined
        check(lambda torch, x, s: x.scatter(dim, long(torch, index), s), data(*shape), data(*source, seed=1))
    check(lambda torch, x, s: x.scatter_add(dim, long(torch, index), s), data(*shape), data(*source, seed=1))
    check(lambda torch, x, s: (x * 1).scatter_add_(dim, long(torch, index), s), data(*shape), data(*source, seed=1))


def test_scatter_without_repeats():
    index = [[2, 0, 1, 0], [0, 1, 2, 1]]
    for source in ((2, 4), (3, 4)):
        check(lambda torch, x, s: x.scatter(0, long(torch, index), s), data(3, 4), data(*source, seed=1),
              grad=source == (2, 4))
    check(lambda torch, x, s: (x * 1).scatter_(0, long(torch, index), src=s), data(3, 4), data(2, 4, seed=1))
    check(lambda torch, x, s: x.t().contiguous().t().clone().scatter_(0, long(torch, index), s), data(3, 4),
          data(2, 4, seed=1))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize(("shape", "dim", "index", "source"), PLACES)
def test_scatter_reduce(shape, dim, index, source, reduce, include_self):
    check(lambda torch, x, s: x.scatter_reduce(dim, long(torch, index), s, reduce, include_self=include_self),
          data(*shape), data(*source, seed=1))
    check(lambda torch, x, s: (x * 1).scatter_reduce_(dim, long(torch, index), s, reduce=reduce,
                                                       include_self=include_self),
          data(*shape), data(*source, seed=1), second=False)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "amax", "amin", "mean"])
def test_reduce_ties_and_zeros(reduce, include_self):
    x, s = values([1.0, 2.0, 0.0, 3.0]), values([1.0, 1.0, 2.0, 0.0, 0.0, 3.0, 0.0])
    index = [0, 0, 1, 1, 2, 2, 3]
    check(lambda torch, x, s: x.scatter_reduce(0, long(torch, index), s, reduce, include_self=include_self), x, s,
          second=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(lambda torch, x, s: x.index_reduce(0, long(torch, index), s, reduce, include_self=include_self), x, s,
              second=False)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce_dtypes(reduce, dtype):
    check(lambda torch, x, s: x.scatter_reduce(0, long(torch, [0, 0, 1, 2]), s, reduce), data(3, dtype=dtype),
          data(4, dtype=dtype, seed=1), second=False)


def test_old_reduce_argument():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for reduce in ("add", "multiply"):
            check(lambda torch, x, r=reduce: x.scatter(0, long(torch, [[0, 1], [0, 0]]), 2.0, reduce=r), data(3, 4),
                  grad=False)
            check(lambda torch, x, s, r=reduce: x.clone().scatter_(0, long(torch, [[0, 1], [0, 0]]), s, reduce=r),
                  data(3, 4), data(2, 2, seed=1), grad=False)
            check(lambda torch, x, r=reduce: x.clone().scatter_(1, long(torch, [[0, 1], [0, 0]]), 3, reduce=r),
                  data(3, 4, dtype="int64"), grad=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    x, s = data(3, 4, dtype=dtype), data(2, 4, dtype=dtype, seed=1)
    check(lambda torch, x: x.gather(1, long(torch, [[0], [3], [1]])), x)
    check(lambda torch, x, s: x.scatter(0, long(torch, [[0, 1, 2, 0]]), s), x, data(1, 4, dtype=dtype, seed=1))
    check(lambda torch, x, s: x.scatter_add(0, long(torch, [[0, 1, 2, 0], [0, 1, 1, 2]]), s), x, s)
    check(lambda torch, x: x.index_select(0, long(torch, [2, 0, 0])), x)
    check(lambda torch, x, s: x.index_add(0, long(torch, [2, 2]), s), x, s)
    check(lambda torch, x, s: x.index_copy(0, long(torch, [2, 0]), s), x, s)
    check(lambda torch, x: x.index_fill(1, long(torch, [2, 0]), 3), x)
    check(lambda torch, x: x.take(long(torch, [[2, -1], [0, 11]])), x)
    check(lambda torch, x: x.masked_fill(torch.tensor([True, False, True, False]), 2), x)
    check(lambda torch, x: x.masked_select(torch.tensor([True, False, True, False])), x)
    check(lambda torch, x: x.tril(), x)
    check(lambda torch, x: torch.diag(x), x)
    check(lambda torch, x: torch.trace(x), x)
    check(lambda torch, x: torch.nonzero(x), x)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_ops(dim):
    x, s = data(3, 3, 3), data(3, 3, 3, seed=1)
    for index in ([0, 2, 1], [1, 1, 0]):
        check(lambda torch, x, i=index: x.index_select(dim, long(torch, i)), x)
        check(lambda torch, x, s, i=index: x.index_add(dim, long(torch, i), s), x, s)
        check(lambda torch, x, s, i=index: torch.index_add(x, dim, long(torch, i), s, alpha=2), x, s)
        check(lambda torch, x, s, i=index: (x * 1).index_add_(dim, long(torch, i), s, alpha=-0.5), x, s)
        check(lambda torch, x, i=index: x.index_fill(dim, long(torch, i[:2]), 1.5), x)
        check(lambda torch, x, v, i=index: (x * 1).index_fill_(dim, long(torch, i[:2]), v), x, data(seed=4))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for reduce in ("prod", "mean", "amax", "amin"):
                check(lambda torch, x, s, i=index, r=reduce: x.index_reduce(dim, long(torch, i), s, r), x, s)
    check(lambda torch, x, s: x.index_copy(dim, long(torch, [2, 0, 1]), s), x, s)
    check(lambda torch, x, s: (x * 1).index_copy_(dim, long(torch, [2, 0, 1]), s), x, s)


def test_index_ops_on_scalars():
    check(lambda torch, x: x.index_select(0, long(torch, [0])), data())
    check(lambda torch, x: x.gather(0, long(torch, [0, 0])), data())
    check(lambda torch, x: x.index_select(0, long(torch, 1)), data(3, 2))
    check(lambda torch, x: x.index_fill(0, long(torch, 0), 1.0), data())
    check(lambda torch, x: x.scatter(0, long(torch, 0), 3.0), data())
    check(lambda torch, x, s: x.index_add(0, long(torch, 0), s), data(), data(seed=1))
    check(lambda torch, x, s: x.index_copy(0, long(torch, 0), s), data(3), data(seed=1))


def test_flat_positions():
    for index in ([[0, 5], [-1, 5]], [], 3):
        check(lambda torch, x, i=index: torch.take(x, long(torch, i)), data(3, 4))
        check(lambda torch, x, i=index: x.t().take(long(torch, i)), data(3, 4))
    for accumulate in (True, False):
        check(lambda torch, x, s, a=accumulate: x.put(long(torch, [0, -2, 5]), s, a), data(3, 4), data(3, seed=1))
        check(lambda torch, x, s, a=accumulate: x.t().clone().t().put_(long(torch, [0, -2, 5]), s, a), data(3, 4),
              data(3, seed=1), nodes=False)
    check(lambda torch, x, s: x.put(long(torch, [1, 1, 1]), s, True), data(3, 4), data(3, seed=1))


def test_take_along_dim():
    check(lambda torch, x: torch.take_along_dim(x, long(torch, [[0], [2], [-1]]), 1), data(3, 4))
    check(lambda torch, x: torch.take_along_dim(x, long(torch, [[0, 1, 1, 2]]), dim=0), data(3, 4))
    check(lambda torch, x: torch.take_along_dim(x, long(torch, [[0, 1]]), -1), data(3, 4))
    check(lambda torch, x: torch.take_along_dim(x, long(torch, [7, 0, 7])), data(3, 4))
    check(lambda torch, x: torch.take_along_dim(x, torch.argsort(x.detach(), 1), 1), data(3, 4))


@pytest.mark.parametrize("mask", [[True, False, True, False], [[True], [False], [True]], True,
                                  [[True, False, False, True]] * 3])
def test_masks(mask):
    check(lambda torch, x: x.masked_fill(torch.tensor(mask), -1.5), data(3, 4))
    check(lambda torch, x, v: x.masked_fill(torch.tensor(mask), v), data(3, 4), data(seed=1))
    check(lambda torch, x: (x * 1).masked_fill_(torch.tensor(mask), float("-inf")), data(3, 4))
    check(lambda torch, x, v: (x * 1).masked_fill_(torch.tensor(mask), v), data(3, 4), data(seed=1))
    check(lambda torch, x: x.masked_select(torch.tensor(mask)), data(3, 4))
    check(lambda torch, x: x.t().clone().t().masked_select(torch.tensor(mask)), data(3, 4))
    check(lambda torch, x, s: x.masked_scatter(torch.tensor(mask), s), data(3, 4), data(13, seed=1))
    check(lambda torch, x, s: (x * 1).masked_scatter_(torch.tensor(mask), s), data(3, 4), data(3, 4, seed=1))


def test_mask_widens_input():
    check(lambda torch, x: x.masked_fill(torch.tensor([[True], [False]]), 1.0), data(3))
    check(lambda torch, x: x.masked_select(torch.tensor([[True], [True]])), data(3))
    check(lambda torch, x: x.masked_select(torch.tensor(True)), data())
    check(lambda torch, x: x.masked_fill(torch.tensor([True, False]), 1.5), values([1, 2], "int64"))


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 3), (2, 2, 2)])
def test_nonzero(shape):
    given = data(*shape, dtype="int64", low=0, high=1)
    check(lambda torch, x: torch.nonzero(x), given)
    check(lambda torch, x: x.nonzero(as_tuple=True), given)
    check(lambda torch, x: torch.argwhere(x), given)
    check(lambda torch, x: x.bool().nonzero(), given)


@pytest.mark.parametrize("diagonal", [-5, -1, 0, 1, 2, 5])
def test_triangles(diagonal):
    for name in ("tril", "triu"):
        check(lambda torch, x, n=name: getattr(torch, n)(x, diagonal), data(3, 4))
        check(lambda torch, x, n=name: getattr(x * 1, n + "_")(diagonal=diagonal), data(2, 4, 3))
        check(lambda torch, n=name: getattr(torch, n + "_indices")(3, 4, diagonal))
    check(lambda torch: torch.tril_indices(3, 3, dtype=torch.int32))
    check(lambda torch: torch.triu_indices(0, 3))


@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_diagonals(offset):
    check(lambda torch, x: torch.diag(x, offset), data(4))
    check(lambda torch, x: torch.diag(x, offset), data(4, 3))
    check(lambda torch, x: torch.diag_embed(x, offset), data(2, 3))
    check(lambda torch, x: torch.diag_embed(x, offset, 0, -1), data(2, 3))
    check(lambda torch, x: torch.diag_embed(x, offset, 2, 0), data(2, 3))
    check(lambda torch, x: torch.diagflat(x, offset), data(2, 2))


def test_trace():
    for shape in ((3, 3), (2, 4), (0, 3)):
        check(lambda torch, x: torch.trace(x), data(*shape))
    check(lambda torch, x: x.trace(), data(3, 3, dtype="int32"))


def test_out():
    check(lambda torch, x: torch.gather(x, 0, long(torch, [[0, 1]]), out=torch.empty(0)), data(3, 4), grad=False)
    check(lambda torch, x: torch.index_select(x, 0, long(torch, [0, 1]), out=torch.empty(2, 4)), data(3, 4), grad=False)
    check(lambda torch, x: torch.nonzero(x, out=torch.empty(0, dtype=torch.int64)), data(3, 4), grad=False)


def test_large():
    """Sizes for which other loops are used."""
    rows = [(i * i) % 37 for i in range(400)]
    check(lambda torch, x: x[long(torch, rows)], data(50, 20), second=False)
    check(lambda torch, x, s: x.index_add(0, long(torch, rows), s), data(50, 20), data(400, 20, seed=1), second=False)
    check(lambda torch, x, s: x.index_add(1, long(torch, rows), s), data(3, 50, 2), data(3, 400, 2, seed=1),
          second=False)
    for dtype in ("float32", "float64", "int64", "bfloat16"):
        check(lambda torch, x, s: x.scatter_add(1, long(torch, [rows[:90]] * 60), s), data(60, 40, dtype=dtype),
              data(60, 90, dtype=dtype, seed=1), second=False, tolerance=0.1 if dtype == "bfloat16" else None)
    for name in ("tril", "triu"):
        check(lambda torch, n=name: getattr(torch, n)(torch.ones(600, 600), 3))


BAD = [
    lambda t, x: x.gather(0, long(t, [[3]])), lambda t, x: x.gather(0, long(t, [[-1]])),
    lambda t, x: x.gather(0, t.tensor([[0.0]])), lambda t, x: x.gather(0, long(t, [0])),
    lambda t, x: x.gather(1, t.zeros(4, 1, dtype=t.int64)), lambda t, x: x.gather(2, long(t, [[0]])),
    lambda t, x: x.scatter(0, long(t, [[3]]), 1.0), lambda t, x: x.scatter(0, long(t, [[0]]), t.tensor([[1]])),
    lambda t, x: x.scatter(0, long(t, [[0, 0], [0, 0]]), t.tensor([[1.0]])),
    lambda t, x: x.scatter(0, long(t, [0]), 1.0), lambda t, x: x.scatter(0, long(t, [[0]]), t.tensor(1.0)),
    lambda t, x: x.scatter(0, long(t, [[0]]), x, reduce="foo"), lambda t, x: x.scatter_add(0, long(t, [[3]]), x),
    lambda t, x: x.scatter_add(0, long(t, [[0]]), t.tensor([[1]])),
    lambda t, x: x.scatter_reduce(0, long(t, [[0]]), x, "foo"), lambda t, x: x.scatter(0, long(t, [[0] * 9]), 1.0),
    lambda t, x: x.index_select(0, long(t, [3])), lambda t, x: x.index_select(0, long(t, [-1])),
    lambda t, x: x.index_select(0, long(t, [[0]])), lambda t, x: x.index_select(0, t.tensor([0.0])),
    lambda t, x: x.index_select(5, long(t, [0])), lambda t, x: t.tensor(1.0).index_select(0, long(t, [0, 0])),
    lambda t, x: x.index_add(0, long(t, [3]), t.zeros(1, 4)), lambda t, x: x.index_add(0, long(t, [-1]), t.ones(1, 4)),
    lambda t, x: x.index_add(0, long(t, [0]), t.zeros(2, 4)), lambda t, x: x.index_add(0, long(t, [0]), t.zeros(1, 3)),
    lambda t, x: x.index_add(0, long(t, [0]), t.zeros(1, 4).double()),
    lambda t, x: x.index_add(0, t.tensor([0.0]), t.zeros(1, 4)),
    lambda t, x: x.index_add(0, long(t, [[0]]), t.zeros(1, 4)),
    lambda t, x: x.index_copy(0, long(t, [3]), t.zeros(1, 4)),
    lambda t, x: x.index_copy(0, long(t, [0]), t.zeros(2, 4)),
    lambda t, x: x.index_copy(0, long(t, [0]), t.zeros(1, 3)),
    lambda t, x: x.index_copy(0, long(t, [0]).int(), t.zeros(1, 4)),
    lambda t, x: x.index_copy(0, long(t, [0]), t.zeros(1, 4).double()),
    lambda t, x: x.index_copy(0, long(t, [0, 1]), t.tensor(1.0)),
    lambda t, x: x.index_fill(0, long(t, [3]), 1.0), lambda t, x: x.index_fill(0, long(t, [0]), t.tensor([1.0])),
    lambda t, x: x.index_fill(0, long(t, [0]).int(), 1.0), lambda t, x: x.index_fill(0, long(t, [[0]]), 1.0),
    lambda t, x: x.take(long(t, [12])), lambda t, x: x.take(long(t, [0]).int()),
    lambda t, x: t.zeros(0).take(long(t, [0])), lambda t, x: t.take_along_dim(x, long(t, [0]), 1),
    lambda t, x: t.take_along_dim(x, long(t, [[0]]).int(), 1), lambda t, x: x.put(long(t, [12]), t.tensor([1.0])),
    lambda t, x: x.put(long(t, [0]), t.tensor([1])), lambda t, x: x.put(long(t, [0, 1]), t.tensor([1.0])),
    lambda t, x: x.masked_fill(x, 1.0), lambda t, x: x.masked_fill(t.tensor([True]), t.tensor([1.0])),
    lambda t, x: x.masked_fill(t.tensor([True, False]), 1.0), lambda t, x: x.masked_fill((x > 0).byte(), 1.0),
    lambda t, x: t.tensor([1, 2]).masked_fill(t.tensor([True, False]), 1j),
    lambda t, x: t.tensor([1, 2]).masked_fill_(t.tensor([[True], [False]]), 1),
    lambda t, x: x.masked_select(long(t, [0, 1, 0, 1])), lambda t, x: x.masked_select(t.tensor([True, False])),
    lambda t, x: x.masked_scatter(x > -9, t.tensor([1.0])), lambda t, x: x.masked_scatter(x > -9, x.long()),
    lambda t, x: x.masked_scatter(x, x), lambda t, x: t.tril(t.tensor([1.0])), lambda t, x: t.tril_indices(-1, 4),
    lambda t, x: t.diag(t.zeros(2, 2, 2)), lambda t, x: t.diag(t.tensor(1.0)), lambda t, x: t.diag_embed(x, 0, 0, 0),
    lambda t, x: t.trace(t.zeros(2, 2, 2)), lambda t, x: t.trace(t.tensor([[True]])),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_errors(number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_error(BAD[number], data(3, 4))
