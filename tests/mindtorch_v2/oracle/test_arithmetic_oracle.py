"""Arithmetic against PyTorch."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from harness import check, check_error, data, ours, theirs, values

SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (3,)), ((0, 3), (3,)), ((2, 3), ())]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_shapes(name, shapes):
    check(lambda torch, x, y: getattr(torch, name)(x, y), data(*shapes[0]), data(*shapes[1], seed=1))


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch warns about complex half
@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_promotion(first, second):
    if {first, second} == {"float16", "complex64"}:
        pytest.skip("PyTorch has complex32 for this, but no sum of it to differentiate with")
    for shapes in (((3,), (3,)), ((3,), ()), ((), (3,))):
        given = data(*shapes[0], dtype=first), data(*shapes[1], dtype=second, seed=1)
        check(lambda torch, x, y: x + y, *given, second=False)
        check(lambda torch, x, y: x * y, *given, second=False)


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch warns about complex half
@pytest.mark.parametrize("number", [2, -3, 2.5, True, 0.0, -0.0, 1e9, 2 + 1j])
@pytest.mark.parametrize("dtype", DTYPES)
def test_python_numbers(dtype, number):
    if dtype == "float16" and isinstance(number, complex):
        pytest.skip("complex32 is not a type of this runtime; the result is complex64")
    for op in (operator.add, operator.mul, operator.truediv):
        if op is operator.truediv and number == 0:
            continue
        if op is operator.add and dtype in ("int8", "uint8", "int32") and number == 1e9:
            continue
        check(lambda torch, x, op=op: op(x, number), data(4, dtype=dtype), second=False)
        check(lambda torch, x, op=op: op(number, x), data(4, dtype=dtype, low=1, high=3), second=False)


def test_alpha():
    check(lambda torch, x, y: torch.add(x, y, alpha=2), data(3), data(3, seed=1))
    check(lambda torch, x, y: torch.sub(x, y, alpha=0.5), data(3), data(3, seed=1))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, -0.5, 2.5])
def test_powers(exponent):
    check(lambda torch, x: x**exponent, data(5, low=0.1, high=2))
    check(lambda torch, x, y: x**y, data(5, low=0.1, high=2), data(5, seed=1))
    check(lambda torch, x: 2.0**x, data(5))


@pytest.mark.parametrize("mode", ["floor", "trunc", None])
@pytest.mark.parametrize("dtype", ["float32", "int64", "int8"])
def test_rounded_division(mode, dtype):
    check(lambda torch, x, y: torch.div(x, y, rounding_mode=mode), values([-7, 7, -7, 7], dtype),
          values([2, -2, -2, 2], dtype), second=False)


@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_remainders(name, dtype):
    check(lambda torch, x, y: getattr(torch, name)(x, y), values([-7, 7, -7, 7], dtype), values([2, -2, -3, 3], dtype),
          second=False, grad=name != "floor_divide")


def test_nan_and_inf():
    special = values([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0])
    for name in ("add", "sub", "mul", "div"):
        check(lambda torch, x, y, name=name: getattr(torch, name)(x, y), special, special, second=False)


def test_in_place_and_out():
    check(lambda torch, x, y: (x * 1).add_(y), data(3), data(3, seed=1))
    check(lambda torch, x, y: (x * 1).mul_(y), data(3), data(3, seed=1))
    check(lambda torch, x, y: torch.add(x, y, out=torch.empty(3)), data(3), data(3, seed=1), grad=False)


def test_errors():
    check_error(lambda torch, x, y: x + y, data(3), data(4))
    check_error(lambda torch, x: torch.add(x, "a"), data(3), words=False)
    check_error(lambda torch, x, y: x.add_(y), data(3, dtype="int64"), data(3))
    check_error(lambda torch, x, y: x.add_(y), data(3), data(2, 3))
    check_error(lambda torch, x, y: x - y, data(3, dtype="bool"), data(3, dtype="bool"))


@pytest.mark.parametrize("call", [
    lambda torch, x: 1 - x, lambda torch, x: x - 1, lambda torch, x: 1.5 - x, lambda torch, x: x - 1.5,
    lambda torch, x: torch.rsub(x, 1), lambda torch, x: x - torch.ones(3), lambda torch, x: torch.ones(3) - x,
    lambda torch, x: torch.ones(3, dtype=torch.int64) - x, lambda torch, x: x.sub_(1),
    lambda torch, x: x.int() - True, lambda torch, x: x - True,
])
def test_booleans_have_no_difference(call):
    check_error(call, values([True, False, True], "bool"))


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_a_factor_of_integers_is_an_integer(alpha):
    one, two = values([1, 2], "int64"), values([3, 4], "int64")
    for name in ("add", "sub", "rsub"):
        check_error(lambda torch, x, y, name=name: getattr(torch, name)(x, y, alpha=alpha), one, two)
        check_error(lambda torch, x, y, name=name: getattr(torch, name)(x, 2, alpha=alpha), one, two)
    check_error(lambda torch, x, y: x.add_(y, alpha=alpha), one, two)
    check_error(lambda torch, x, y: x.sub_(y, alpha=alpha), one, two)
    check_error(lambda torch, x, y: torch.add(x.float(), y.float(), alpha=1j), one, two)
    check(lambda torch, x, y: torch.add(x, y, alpha=alpha), values([1.0, 2.0]), two)


@pytest.mark.parametrize("divisor", [1.5, -1.5, 0.1, 3e-8, 7.0, -2.0, float("inf"), 0.0])
def test_remainders_of_many_numbers(divisor):
    many = np.random.default_rng(0).standard_normal(1000) * 10
    many[:6] = [0.0, -0.0, 3.0, -3.0, 1e-30, -1e-30]
    for name in ("remainder", "fmod"):
        check(lambda torch, x, name=name: getattr(torch, name)(x, divisor), values(many), second=False, tolerance=0)
        check(lambda torch, x, name=name: getattr(torch, name)(x, divisor), values(many[6:]), second=False,
              tolerance=0)


def test_a_large_number_minus_small_integers():
    check(lambda torch, x: 2**40 - x, data(3, dtype="uint8"))
    check(lambda torch, x: 2**40 - x, data(3, dtype="int16"))


@pytest.mark.parametrize("write", [
    lambda torch, x, y, z: torch.sub(x, y[0], out=z), lambda torch, x, y, z: torch.maximum(x, y, out=z),
    lambda torch, x, y, z: torch.add(x, y, alpha=2, out=z), lambda torch, x, y, z: torch.exp(x, out=z.t()).t(),
    lambda torch, x, y, z: torch.mul(z, y, out=z), lambda torch, x, y, z: torch.mul(x.double(), y, out=z.double()),
    lambda torch, x, y, z: torch.eq(x, y, out=z.bool()), lambda torch, x, y, z: torch.add(x[:, :2], 1, out=z[:, ::2]),
])
def test_results_in_given_memory(write):
    x, y, z = data(4, 4), data(4, 4), data(4, 4)
    check(lambda torch, *given: write(torch, *(t.detach().clone() for t in given)), x, y, z, grad=False)


def test_given_memory_changes_its_version():
    for torch in (ours, theirs):
        z = torch.zeros(3)
        torch.add(torch.ones(3), 1, out=z)
        assert z._version == 1
        assert z.tolist() == [2, 2, 2]


BESIDE_HALVES = {
    "x * n": lambda torch, x, n: x * n, "n * x": lambda torch, x, n: n * x, "x / n": lambda torch, x, n: x / n,
    "n / x": lambda torch, x, n: n / x, "x // n": lambda torch, x, n: x // n,
    "mul_": lambda torch, x, n: x.clone().mul_(n), "div_": lambda torch, x, n: x.clone().div_(n),
    "a tensor": lambda torch, x, n: x * torch.tensor(n), "divided by a tensor": lambda torch, x, n: x / torch.tensor(n),
    "trunc": lambda torch, x, n: torch.div(x, n, rounding_mode="trunc"),
    "out": lambda torch, x, n: torch.mul(x, n, out=torch.empty(0, dtype=x.dtype)),
    "strided": lambda torch, x, n: x[::2] * n, "without dimensions": lambda torch, x, n: x[3] * n,
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("form", BESIDE_HALVES)
def test_numbers_beside_16_bit_floats_keep_their_digits(form: str, dtype: str) -> None:
    values = [0.001, -1e-6, 3.0, 7.25, -0.1, 65000.0, 0.0, 123.0]
    for number in (0.1, 1 / 3, 1e-6, 1e6, 1 << 20, -0.7, 7):
        mine, other = (BESIDE_HALVES[form](torch, torch.tensor(values).to(getattr(torch, dtype)), number)
                       for torch in (ours, theirs))
        assert str(mine.dtype).endswith(dtype)
        assert mine.double().tolist() == other.double().tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scaled_sums_of_16_bit_floats_are_rounded_once(dtype: str) -> None:
    for alpha in (0.3, -0.7, 3):
        for form in ("add", "sub", "add_", "sub_"):
            results = []
            for torch in (ours, theirs):
                x = torch.tensor([1.0, 2.5, -3.0, 0.1] * 16).to(getattr(torch, dtype))
                results.append(getattr(x, form)(x + 0.5, alpha=alpha).double().tolist())
            assert results[0] == results[1]
