"""Reductions and statistics against PyTorch."""

from __future__ import annotations

import pickle

import pytest
from harness import check, check_error, data, values

import mindtorch_v2 as ours
from mindtorch_v2._dispatch import observer

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:.*degrees of freedom")

NAN, INF = float("nan"), float("inf")
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64"]
REAL = [d for d in DTYPES if d != "complex64"]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
DIMS = [0, -1, (0, 2), [1], (), None, (-1, -3)]
TIES = values([[1, 3, 3, 2], [2, 2, 2, 2], [0, -1, 0, -1]])
GAPS = values([[1, NAN, 3, NAN], [NAN, 5, 2, 4], [1, 6, 7, 3]])


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "nanmean", "amax", "amin", "var", "std", "logsumexp"])
def test_dims(name, dim, keepdim):
    if name in ("amax", "amin", "logsumexp") and (dim is None or (name == "logsumexp" and dim == ())):
        pytest.skip("PyTorch takes no None here")
    # PyTorch counts the elements of an empty list of dimensions as 1 in the backward of var and std.
    grad = name not in ("var", "std") or dim != ()
    check(lambda torch, x: getattr(torch, name)(x, dim, keepdim=keepdim), data(3, 4, 2), grad=grad)
    check(lambda torch, x: getattr(x, name)(dim=dim, keepdim=keepdim), data(2, 4, 3), second=False, grad=grad)


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "prod", "max", "min", "amax", "amin", "var", "std", "all",
                                  "any", "argmax", "argmin", "median", "nanmedian", "norm", "count_nonzero"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (1, 1), ()])
def test_whole(name, shape):
    check(lambda torch, x: getattr(torch, name)(x), data(*shape), second=bool(shape) and shape != (1, 1))
    if len(shape) == 2:
        check(lambda torch, x: getattr(torch, name)(x.t()), data(*shape), second=False)
        check(lambda torch, x: getattr(x[:, ::2], name)(), data(*shape), second=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "all", "any", "count_nonzero"])
def test_dtypes(name, dtype):
    check(lambda torch, x: getattr(torch, name)(x).reshape(1), data(2, 3, dtype=dtype), second=False)
    check(lambda torch, x: getattr(torch, name)(x, 1), data(2, 3, dtype=dtype), second=False)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "aminmax", "nansum"])
def test_real_dtypes(name, dtype):
    check(lambda torch, x: getattr(torch, name)(x), data(2, 5, dtype=dtype), second=False)
    check(lambda torch, x: getattr(torch, name)(x, dim=1), data(3, 5, dtype=dtype), second=False)


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64"])
@pytest.mark.parametrize("name", ["mean", "var", "std", "norm", "nanmean"])
def test_floating_dtypes(name, dtype):
    if name == "nanmean" and dtype == "complex64":
        pytest.skip("PyTorch does not have it")
    check(lambda torch, x: getattr(torch, name)(x).reshape(1), data(3, 4, dtype=dtype), second=False)
    check(lambda torch, x: getattr(torch, name)(x, dim=1), data(3, 4, dtype=dtype), second=False)


@pytest.mark.parametrize("to", ["float32", "float64", "float16", "int64", "int32"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "uint8"])
def test_dtype_argument(dtype, to):
    for name in ("sum", "prod", "nansum"):
        options = {"second": False, "grad": to.startswith("float"), "tolerance": 2e-3 if to == "float16" else None}
        check(lambda torch, x, name=name: getattr(torch, name)(x, dtype=getattr(torch, to)),
              data(2, 3, dtype=dtype), **options)
        check(lambda torch, x, name=name: getattr(torch, name)(x, 1, dtype=getattr(torch, to)),
              data(2, 3, dtype=dtype), **options)
    if to.startswith("float"):
        check(lambda torch, x: torch.mean(x, dtype=getattr(torch, to)), data(2, 3, dtype=dtype), second=False)


def test_half_precision_accumulates_in_float32():
    for dtype in ("float16", "bfloat16"):
        check(lambda torch, x: x.sum(), values([0.1] * 4096, dtype), grad=False)
        check(lambda torch, x: x.mean(0), values([[30.0]] * 4096, dtype), grad=False)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1, -2])
@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "mode", "argmax", "argmin", "prod", "all",
                                  "any"])
def test_one_dim(name, dim, keepdim):
    check(lambda torch, x: getattr(torch, name)(x, dim, keepdim), data(3, 5))
    check(lambda torch, x: getattr(x, name)(dim=dim, keepdim=keepdim), data(4, 2), second=False)
    check(lambda torch, x: getattr(x, name)(dim=-1, keepdim=keepdim), data(), second=False)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "aminmax", "argmax", "argmin"])
def test_ties(name):
    check(lambda torch, x: getattr(torch, name)(x), TIES)
    check(lambda torch, x: getattr(torch, name)(x, dim=1), TIES)
    check(lambda torch, x: getattr(torch, name)(x, dim=0), TIES)


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "median", "nanmedian",
                                  "nansum", "nanmean", "sum", "mean", "all", "any", "var", "prod"])
def test_nan(name):
    check(lambda torch, x: getattr(torch, name)(x), GAPS, second=False)
    check(lambda torch, x: getattr(torch, name)(x, dim=1), GAPS, second=False)
    check(lambda torch, x: getattr(torch, name)(x, dim=0), GAPS, second=False)


@pytest.mark.parametrize("content", [[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [1.5, 2.0, 3.0], [0.0, 0.0, 0.0]])
def test_prod_with_zeros(content):
    check(lambda torch, x: torch.prod(x), values(content))
    check(lambda torch, x: torch.prod(x, 1, keepdim=True), values([content, [1.0, 0.0, -2.0]]))
    check(lambda torch, x: torch.prod(x, 0), values([content, [1.0, 0.0, -2.0]]))


def test_binary_extremes():
    check(lambda torch, x, y: torch.max(x, y), data(3, 4), data(4, seed=1))
    check(lambda torch, x, y: x.min(y), data(3, 4), data(3, 4, seed=1))
    check(lambda torch, x, y: torch.max(x, other=y), data(3, 4), data(3, 4, seed=1))


FORMS = [
    lambda torch, x: x.var(False),
    lambda torch, x: x.var(0, False),
    lambda torch, x: x.std(0, False, True),
    lambda torch, x: x.var(unbiased=False),
    lambda torch, x: torch.std(x, dim=(0, 1), unbiased=True, keepdim=True),
    lambda torch, x: torch.var(x, dim=1, correction=0),
    lambda torch, x: torch.std(x, correction=2),
    lambda torch, x: torch.var(x, [0], correction=1.5, keepdim=True),
    lambda torch, x: torch.var_mean(x),
    lambda torch, x: torch.var_mean(x, 1),
    lambda torch, x: torch.std_mean(x, False),
    lambda torch, x: torch.std_mean(x, 0, False, True),
    lambda torch, x: torch.std_mean(x, dim=1, correction=0, keepdim=True),
    lambda torch, x: torch.var(x, axis=1),
]


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_variance_forms(number):
    check(FORMS[number], data(3, 4))


def test_variance_without_freedom():
    check(lambda torch, x: x.var(), data(1), second=False)
    check(lambda torch, x: x.std(1), data(3, 1), second=False)
    check(lambda torch, x: x.var(1, correction=4), data(2, 3), second=False)
    check(lambda torch, x: x.std(), values([2.0, 2.0, 2.0]), second=False)
    check(lambda torch, x: x.var(), data(0), grad=False)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_variance_without_freedom_warns(name):
    for module in (ours, torch):
        with pytest.warns(UserWarning, match=rf"{name}\(\): degrees of freedom is <= 0"):
            getattr(module, name)(module.ones(1))


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, 2.5, INF, -INF, -1, "fro", None])
def test_norm(p):
    second = p not in (1, INF, -INF)
    check(lambda torch, x: torch.norm(x, p), data(3, 4), second=second)
    check(lambda torch, x: torch.norm(x, p, dim=1), data(3, 4), second=second)
    check(lambda torch, x: x.norm(p, [0, 1], True), data(3, 4), second=second)
    if not isinstance(p, str):
        check(lambda torch, x: torch.norm(x, p, 1), values([[0.0, 0.0], [0.0, 2.0]]), second=False)


def test_norm_options():
    check(lambda torch, x: torch.norm(x, dtype=torch.float64), data(3, 4))
    check(lambda torch, x: torch.norm(x, 1, 0, True, dtype=torch.float32), data(3, 4, dtype="float16"), second=False)
    check(lambda torch, x: torch.norm(x), data(0))
    check(lambda torch, x: torch.norm(x, INF, 0), data(2, 0), grad=False)
    check_error(lambda torch, x: torch.norm(x, INF), data(0))
    check_error(lambda torch, x: torch.norm(x, -1, 1), data(2, 0))
    check_error(lambda torch, x: torch.norm(x), data(3, dtype="int64"))
    check_error(lambda torch, x: torch.norm(x, "bad"), data(3, 3))


@pytest.mark.parametrize("p", [0, 1, 2, 3, INF])
def test_dist(p):
    options = {"grad": p != 0, "second": p in (2, 3)}
    check(lambda torch, x, y: torch.dist(x, y, p), data(3, 4), data(3, 4, seed=1), **options)
    check(lambda torch, x, y: x.dist(y, p), data(3, 4), data(4, seed=1), **options)


def test_logsumexp():
    check(lambda torch, x: torch.logsumexp(x, 0), values([-INF, -INF]), grad=False)
    check(lambda torch, x: torch.logsumexp(x, 0), values([INF, 1.0]), grad=False)
    check(lambda torch, x: torch.logsumexp(x, 0), values([1000.0, 1000.0]))
    check(lambda torch, x: torch.logsumexp(x, (0, 1), True), data(2, 3, dtype="int64"))
    check(lambda torch, x: torch.logsumexp(x, 0), data(0), grad=False)
    check(lambda torch, x: torch.logsumexp(x, 1), data(3, 4, dtype="bfloat16"), second=False)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantile(name, interpolation):
    def call(torch, x, *args, **options):
        return getattr(torch, name)(x, *args, interpolation=interpolation, **options)

    for given in (data(3, 4), GAPS):
        check(lambda torch, x: call(torch, x, 0.3), given, second=False)
        check(lambda torch, x: call(torch, x, 0.3, 1, keepdim=True), given, second=False)
        check(lambda torch, x: call(torch, x, 0.5, 0), given, second=False)
        check(lambda torch, x: call(torch, x, 0.5, keepdim=True), given, second=False)
        check(lambda torch, x, q: call(torch, x, q, 0), given, values([0.1, 0.5, 1.0]), second=False)
        check(lambda torch, x, q: call(torch, x, q.detach(), 1, keepdim=True), given, values([0.1, 0.5]), second=False)


def test_quantile_while_observed():
    x = ours.tensor([1.0, 2.0, 5.0])
    plain = x.quantile(0.25).item()
    observer.observe(lambda state: state.record_into([]))
    try:
        observed = x.quantile(0.25).item()
    finally:
        observer.unobserve()
    assert observed == plain == 1.5


def test_quantile_errors():
    check_error(lambda torch, x: torch.quantile(x, 2.0), data(3))
    check_error(lambda torch, x: torch.quantile(x, 0.5), data(3, dtype="int64"))
    check_error(lambda torch, x: torch.quantile(x, 0.5), data(0))
    check_error(lambda torch, x: torch.quantile(x, 0.5, interpolation="bad"), data(3))


def test_empty():
    for name in ("sum", "mean", "prod", "all", "any", "median", "var", "nansum"):
        check(lambda torch, x, name=name: getattr(torch, name)(x), data(0), second=False, grad=False)
    for name in ("sum", "mean", "prod", "all", "any"):
        check(lambda torch, x, name=name: getattr(torch, name)(x, 1), data(2, 0), second=False)
        check(lambda torch, x, name=name: getattr(torch, name)(x, 0), data(2, 0), second=False)
    for name in ("max", "min", "amax", "argmax", "median", "mode"):
        check(lambda torch, x, name=name: getattr(torch, name)(x, 0), data(2, 0), grad=False)
        check_error(lambda torch, x, name=name: getattr(torch, name)(x, 1), data(2, 0))
    for name in ("max", "min", "amax", "argmin", "aminmax"):
        check_error(lambda torch, x, name=name: getattr(torch, name)(x), data(2, 0))


def test_truth_over_no_dims():
    check(lambda torch, x: torch.all(x, ()), values([[0.0, 1.0]]), grad=False)
    check(lambda torch, x: torch.any(x, (0, 1), keepdim=True), values([[0.0, 1.0]]), grad=False)


def test_zero_dims():
    for name in ("sum", "mean", "max", "amin", "argmax", "prod", "all", "mode", "median", "norm"):
        option = {} if name != "norm" else {"p": 2}
        check(lambda torch, x, name=name, option=option: getattr(torch, name)(x, dim=0, **option), data(), second=False)
        check_error(lambda torch, x, name=name, option=option: getattr(torch, name)(x, dim=1, **option), data())


@pytest.mark.parametrize(("call", "dtype"), [
    (lambda torch, x: x.sum(3), "float32"),
    (lambda torch, x: x.sum((0, 0)), "float32"),
    (lambda torch, x: x.sum(0, 1), "float32"),
    (lambda torch, x: x.mean(), "int64"),
    (lambda torch, x: x.mean(dtype=torch.int64), "float32"),
    (lambda torch, x: x.var(), "int64"),
    (lambda torch, x: x.nanmean(), "int64"),
    (lambda torch, x: x.max(), "complex64"),
    (lambda torch, x: x.max(0), "complex64"),
    (lambda torch, x: x.amax(), "complex64"),
    (lambda torch, x: x.argmax(), "bool"),
    (lambda torch, x: x.median(), "bool"),
    (lambda torch, x: x.nansum(), "complex64"),
    (lambda torch, x: x.max((0, 1)), "float32"),
    (lambda torch, x: x.prod((0, 1)), "float32"),
    (lambda torch, x: x.argmax(5), "float32"),
    (lambda torch, x: torch.sum("a"), "float32"),
])
def test_errors(call, dtype):
    check_error(call, data(2, 3, dtype=dtype), words=dtype != "float32")


def test_out_and_axis():
    check(lambda torch, x: torch.sum(x, 1, out=torch.empty(2)), data(2, 3), grad=False)
    check(lambda torch, x: torch.max(x, 1, out=(torch.empty(2), torch.empty(2, dtype=torch.int64))), data(2, 3),
          grad=False)
    check(lambda torch, x: torch.std(x, 1, out=torch.empty(0)), data(2, 3), grad=False)
    check(lambda torch, x: x.sum(axis=0), data(2, 3))
    check(lambda torch, x: x.mean(axis=(0, 1), keepdims=True), data(2, 3))
    check(lambda torch, x: x.max(axis=1), data(2, 3))
    check(lambda torch, x: torch.sum(input=x, dim=0), data(2, 3))


def test_node_numbers():
    for number, (whole, partial) in {"sum": (0, 1), "mean": (0, 1), "prod": (0, 1), "max": (1, 0), "min": (1, 0),
                                     "median": (0, 1), "nanmedian": (0, 1)}.items():
        x = ours.ones(2, 3, requires_grad=True)
        y = torch.ones(2, 3, requires_grad=True)
        for call in (lambda t, n=number: getattr(t, n)(), lambda t, n=number: getattr(t, n)(dim=1)):
            mine, theirs = call(x), call(y)
            mine, theirs = (r[0] if isinstance(r, tuple) else r for r in (mine, theirs))
            assert mine.grad_fn.name() == theirs.grad_fn.name()
        assert (whole, partial) == tuple(int(getattr(x, number)(**o)[0].grad_fn.name()[-1]) if o and number not in (
            "sum", "mean", "prod") else int(getattr(x, number)(**o).grad_fn.name()[-1]) for o in ({}, {"dim": 1}))


def test_named_results():
    content = [[1.0, 5.0], [3.0, 2.0]]
    got, want = ours.tensor(content).max(1), torch.tensor(content).max(1)
    assert repr(got) == repr(want)
    assert isinstance(got, tuple)
    assert got.values.tolist() == [5.0, 3.0]
    assert got.indices.tolist() == [1, 0]
    assert repr(type(got)) == repr(type(want))
    assert got.n_fields == want.n_fields
    again = pickle.loads(pickle.dumps(got))
    assert type(again) is type(got)
    assert again.values.tolist() == [5.0, 3.0]
    with pytest.raises(TypeError, match="2-sequence"):
        type(got)((1,))


@pytest.mark.parametrize("call", [
    "x.sum()", "x.sum(None)", "x.sum(dim=None)", "x.sum(axis=None)", "x.sum(None, True)", "x.mean()", "x.mean(None)",
    "x.mean(dim=None, keepdim=True)", "x.sum(keepdim=True)", "x.mean(keepdim=True)", "x.sum(dim=None, axis=0)"])
def test_all_dimensions_by_name_are_another_overload(call):
    def seen(module):
        x = module.ones(2, 3, requires_grad=True)
        try:
            result = eval(call, {"x": x})
        except TypeError:
            return "TypeError"
        gradient = module.autograd.grad(result.sum(), x)[0]
        return result.grad_fn.name(), tuple(result.shape), (gradient * 6).round().tolist()

    assert repr(seen(ours)) == repr(seen(torch))
