"""Comparison, logic, bits, selection and clamping against PyTorch."""

from __future__ import annotations

import operator

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check, check_error, data, values  # noqa: E402

COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "not_equal"]
SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (3,)), ((0, 3), (3,)), ((2, 3), ())]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool"]
SPECIAL = values([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0])


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name, shapes):
    given = data(*shapes[0], dtype="int64"), data(*shapes[1], dtype="int64", seed=1)
    check(lambda torch, x, y: getattr(torch, name)(x, y), *given)
    check(lambda torch, x, y: getattr(x, name)(y), *given)


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_comparison_promotion(first, second):
    given = data(6, dtype=first), data(6, dtype=second, seed=1)
    for op in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        check(lambda torch, x, y, op=op: op(x, y), *given, grad=False)


@pytest.mark.parametrize("number", [0, 1, -1, 0.5, True, float("inf"), float("nan")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_comparison_with_numbers(dtype, number):
    for op in (operator.eq, operator.lt, operator.ge):
        check(lambda torch, x, op=op: op(x, number), data(6, dtype=dtype), grad=False)
        check(lambda torch, x, op=op: op(number, x), data(6, dtype=dtype), grad=False)


def test_comparison_in_place_and_errors():
    check(lambda torch, x, y: x.eq_(y), data(4, dtype="int64"), data(4, dtype="int64", seed=1))
    check(lambda torch, x: x.lt_(0.5), data(4), grad=False)
    check(lambda torch, x, y: torch.gt(x, y, out=torch.empty(4, dtype=torch.bool)), data(4),
          data(4, seed=1), grad=False)
    check(lambda torch, x: x == x, data(4, dtype="complex64"))
    check_error(lambda torch, x: x < x, data(4, dtype="complex64"))
    check_error(lambda torch, x, y: x < y, data(4), data(3))
    check(lambda torch, x: [getattr(torch, name)(x, x) for name in COMPARISONS], SPECIAL, grad=False)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("first", DTYPES)
def test_logic(name, first):
    for second in ("float32", "int64", "bool", "bfloat16"):
        given = data(6, dtype=first), data(6, dtype=second, seed=1)
        check(lambda torch, x, y: getattr(torch, name)(x, y), *given, grad=False)
    check(lambda torch, x: torch.logical_not(x), data(6, dtype=first), grad=False)
    check(lambda torch, x: getattr(x, name + "_")(x), data(6, dtype=first), grad=False)
    check_error(lambda torch, x: getattr(torch, name)(x, True), data(3))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name):
    for first in ("int64", "int8", "uint8", "bool"):
        for second in ("int64", "uint8", "bool"):
            check(lambda torch, x, y: getattr(torch, name)(x, y), data(3, 4, dtype=first, high=9),
                  data(4, dtype=second, high=9, seed=1))
        check(lambda torch, x: getattr(torch, name)(x, 6), data(6, dtype=first))
        check(lambda torch, x: torch.bitwise_not(x), data(6, dtype=first))
    check(lambda torch, x: getattr(torch, name)(6, x), data(6, dtype="int64"))
    check(lambda torch, x: getattr(x, name + "_")(5), data(6, dtype="int64"))
    check_error(lambda torch, x: getattr(torch, name)(x, x), data(3))
    check_error(lambda torch, x: torch.bitwise_not(x), data(3))


def test_bit_operators():
    given = data(6, dtype="int64", low=0, high=9), data(6, dtype="int64", low=0, high=9, seed=1)
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.iand,
               operator.ior, operator.ixor):
        check(lambda torch, x, y, op=op: op(x, y), *given)
        check(lambda torch, x, y, op=op: op(x, 3), *given)
    check(lambda torch, x, y: (5 & x, 5 | x, 5 ^ x, 5 << x, 500 >> x), *given)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
@pytest.mark.parametrize("by", [0, 1, 3, 7, 70, -1])
def test_shifts(dtype, by):
    if dtype == "uint8" and by < 0:
        return
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        check(lambda torch, x, name=name: getattr(torch, name)(x, by), data(8, dtype=dtype, low=-100, high=100))
        check(lambda torch, x, y, name=name: getattr(torch, name)(x, y), data(8, dtype=dtype, low=-100, high=100),
              data(8, dtype=dtype, low=0, high=7, seed=1))
    check_error(lambda torch, x: torch.bitwise_left_shift(x, x), data(3))


def test_closeness():
    x = values([1.0, 1.0, float("nan"), float("inf"), 1e9, 0.0])
    y = values([1.000001, 1.1, float("nan"), float("inf"), 1e9 + 1e4, 1e-9])
    for settings in ({}, {"equal_nan": True}, {"rtol": 0.2}, {"atol": 0.2}, {"rtol": 0.0, "atol": 0.0}):
        check(lambda torch, x, y, settings=settings: torch.isclose(x, y, **settings), x, y, grad=False)
        check(lambda torch, x, y, settings=settings: torch.allclose(x, y, **settings), x, y, grad=False)
    check(lambda torch, x, y: torch.isclose(x, y, atol=1), data(6, dtype="int64"), data(6, dtype="int64", seed=1))
    check(lambda torch, x: x.allclose(x), data(2, 3, dtype="complex64"), grad=False)
    check(lambda torch, x, y: torch.isclose(x, y), data(2, 3), data(3, seed=1), grad=False)
    check_error(lambda torch, x: torch.isclose(x, x.double()), data(3))
    check_error(lambda torch, x: torch.isclose(x, x, rtol=-1), data(3))


def test_equal():
    check(lambda torch, x, y: (torch.equal(x, y), torch.equal(x, x), x.equal(x * 1)), data(3), data(3, seed=1),
          grad=False)
    check(lambda torch, x: (torch.equal(x, x[:2]), torch.equal(x, x.int()), torch.equal(x[:0], x[:0])),
          data(3, dtype="int64"))
    check(lambda torch, x: torch.equal(x, x), SPECIAL, grad=False)


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), ()), ((), (3,), (3,)), ((0, 3), (3,), ())])
def test_where(shapes):
    given = data(*shapes[0], dtype="bool"), data(*shapes[1]), data(*shapes[2], seed=1)
    check(lambda torch, c, x, y: torch.where(c, x, y), *given)
    check(lambda torch, c, x, y: x.where(c, y), *given)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "bool"])
def test_where_with_numbers(dtype):
    given = data(5, dtype="bool"), data(5, dtype=dtype, seed=3)
    for number in (0, 1.5, True):
        check(lambda torch, c, x, number=number: torch.where(c, x, number), *given)
        check(lambda torch, c, x, number=number: torch.where(c, number, x), *given)
        check(lambda torch, c, x, number=number: torch.where(c, number, 2), *given)
    check(lambda torch, c, x: torch.where(c, x, torch.tensor(1.5, dtype=torch.float64)), *given, nodes=False)
    check(lambda torch, c, x: torch.where(condition=c, input=x, other=x), *given)


def test_where_positions_and_errors():
    check(lambda torch, c: torch.where(c), data(3, 4, dtype="bool"))
    check(lambda torch, x: torch.where(x), values(3.0), grad=False)
    check_error(lambda torch, x: torch.where(x, x, x), data(3))
    check_error(lambda torch, x, y: torch.where(x > 0, x, y), data(3), data(4))


BOUNDS = [(-1, 1), (-0.5, None), (None, 0.5), (1, -1), (0, 0), (float("nan"), 1.0)]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", ["clamp", "clip"])
def test_clamp(name, bounds):
    low, high = bounds
    check(lambda torch, x: getattr(torch, name)(x, low, high), data(3, 4))
    check(lambda torch, x: getattr(torch, name)(x, min=low, max=high), SPECIAL, second=False)
    check(lambda torch, x: getattr(x * 1, name + "_")(min=low, max=high), data(3, 4), nodes=False)
    check(lambda torch, x: getattr(torch, name)(x, low, high, out=torch.empty(4)), data(4), grad=False)
    if low == low:
        check(lambda torch, x: getattr(x, name)(low, high), data(9, dtype="int64"))
        check(lambda torch, x: getattr(x, name)(low, high), data(9, dtype="bfloat16"), grad=False)


def test_clamp_by_tensors():
    x, low, high = data(3, 4), data(4, low=-1, high=0, seed=1), data(3, 1, low=0, high=1, seed=2)
    check(lambda torch, x, low, high: torch.clamp(x, low, high), x, low, high)
    check(lambda torch, x, low, high: torch.clamp(x, high, low), x, low, high)
    check(lambda torch, x, low: torch.clamp(x, min=low), x, low)
    check(lambda torch, x, high: torch.clamp(x, max=high), x, high)
    check(lambda torch, x: torch.clamp(x, torch.tensor(-0.5), 0.5), x)
    check(lambda torch, x, low: (x * 1).clamp_(low), x, low, nodes=False)
    check(lambda torch, x, low: torch.clamp(x, low), data(4, dtype="int64"), values(0.5), nodes=False)


def test_one_sided_clamp():
    for name in ("clamp_min", "clamp_max"):
        check(lambda torch, x, name=name: getattr(torch, name)(x, 0.3), data(3, 4))
        check(lambda torch, x, y, name=name: getattr(torch, name)(x, y), data(3, 4), data(4, seed=1))
        check(lambda torch, x, name=name: getattr(x * 1, name + "_")(0.3), data(3, 4), nodes=False)
    check_error(lambda torch, x: torch.clamp(x), data(3))
    check_error(lambda torch, x: torch.clamp(x, 0), data(3, dtype="complex64"))
    check_error(lambda torch, x: x.clamp_(0.5), data(3, dtype="int64"))
    check_error(lambda torch, x, y: torch.clamp(x, y), data(3), data(4))
