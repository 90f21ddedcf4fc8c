"""Scans against PyTorch."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, values

NAN, INF = float("nan"), float("inf")
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool", "complex64"]
SCANS = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (1, 3), (0,), (2, 0), (3, 1)])
@pytest.mark.parametrize("name", SCANS)
def test_shapes(name, shape):
    for dim in range(-len(shape), len(shape)):
        check(lambda torch, x, dim=dim: getattr(torch, name)(x, dim), data(*shape), second=0 not in shape)
    if len(shape) == 2:
        check(lambda torch, x: getattr(x.t(), name)(dim=0), data(*shape), second=False)


@pytest.mark.parametrize("name", SCANS)
def test_zero_dims(name):
    check(lambda torch, x: getattr(torch, name)(x, 0), data(), second=False)
    check(lambda torch, x: getattr(torch, name)(x, -1), data(), second=False)
    check_error(lambda torch, x: getattr(torch, name)(x, 1), data())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SCANS)
def test_dtypes(name, dtype):
    refused = (name.startswith("cumm") and dtype == "complex64") or (
        name == "logcumsumexp" and dtype in ("int64", "int8", "uint8", "bool"))
    if refused:
        check_error(lambda torch, x: getattr(torch, name)(x, 0), data(3, dtype=dtype))
    else:
        check(lambda torch, x: getattr(torch, name)(x, 1), data(2, 4, dtype=dtype), second=False,
              grad=dtype != "complex64" or name != "logcumsumexp")


@pytest.mark.parametrize("to", ["float64", "float32", "int64", "float16"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_dtype_argument(dtype, to):
    for name in ("cumsum", "cumprod"):
        check(lambda torch, x, name=name: getattr(torch, name)(x, 0, dtype=getattr(torch, to)),
              data(4, dtype=dtype), second=False, grad=to.startswith("float"),
              tolerance=2e-3 if to == "float16" else None)


@pytest.mark.parametrize("content", [[2.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, 5.0], [1.0, 2.0, 3.0, 0.0],
                                     [0.0, 0.0, 0.0, 0.0], [3.0, 1.0, 2.0, 4.0]])
def test_cumprod_with_zeros(content):
    check(lambda torch, x: torch.cumprod(x, 0), values(content))
    check(lambda torch, x: torch.cumprod(x, 0), values(content), second=False)
    both = values([content, [1.0, 0.0, -2.0, 0.0], [1.0, 2.0, 3.0, 4.0]])
    for dim in (0, 1):
        check(lambda torch, x, dim=dim: torch.cumprod(x, dim), both)
        check(lambda torch, x, dim=dim: torch.cumprod(x, dim), both, second=False)


def test_special_values():
    special = values([[1.0, NAN, 3.0, NAN, 2.0], [INF, -INF, 2.0, INF, 0.0], [-INF, -INF, 1.0, 1.0, 1.0]])
    for name in SCANS:
        check(lambda torch, x, name=name: getattr(torch, name)(x, 1), special, grad=False)
    ties = values([2.0, 2.0, 1.0, 2.0, 3.0, 3.0])
    check(lambda torch, x: torch.cummax(x, 0), ties)
    check(lambda torch, x: torch.cummin(x, 0), ties)


def test_in_place_and_out():
    check(lambda torch, x: (x * 1).cumsum_(0), data(4))
    check(lambda torch, x: (x * 1).cumprod_(1), data(2, 4))
    check(lambda torch, x: torch.cumsum(x, 0, out=torch.empty(4)), data(4), grad=False)
    check(lambda torch, x: torch.cummax(x, 0, out=(torch.empty(4), torch.empty(4, dtype=torch.int64))), data(4),
          grad=False)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_diff(dtype):
    for n in (0, 1, 2, 5):
        check(lambda torch, x, n=n: torch.diff(x, n), data(3, 4, dtype=dtype), second=False, nodes=n > 0)
    check(lambda torch, x: x.diff(dim=0), data(3, 4, dtype=dtype))
    check(lambda torch, x, y: torch.diff(x, prepend=y, append=x), data(3, 4, dtype=dtype), data(3, 2, dtype=dtype))
    check_error(lambda torch, x: torch.diff(x), data(dtype=dtype))
    check_error(lambda torch, x: torch.diff(x, -1), data(3, dtype=dtype))


@pytest.mark.parametrize("name", ["trapz", "trapezoid", "cumulative_trapezoid"])
def test_integrals(name):
    check(lambda torch, y: getattr(torch, name)(y), data(3, 4))
    check(lambda torch, y: getattr(torch, name)(y, dx=2.0, dim=0), data(3, 4))
    check(lambda torch, y, x: getattr(torch, name)(y, x), data(3, 4), data(4, seed=1))
    check(lambda torch, y, x: getattr(torch, name)(y, x, dim=0), data(3, 4), data(3, 4, seed=1))
    check(lambda torch, y, x: getattr(torch, name)(y, x, dim=0), data(3, 4), data(3, seed=1))
