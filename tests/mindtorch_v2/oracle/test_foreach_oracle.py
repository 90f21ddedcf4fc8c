"""`_foreach_*` ops against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness import check, check_error, data

from mindtorch_v2._ops.foreach import UNARY

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

POSITIVE = {"acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "log": (0.1, 3), "log10": (0.1, 3), "log1p": (-0.5, 3),
            "log2": (0.1, 3), "rsqrt": (0.1, 3), "sqrt": (0.1, 3), "lgamma": (0.2, 3), "reciprocal": (0.5, 3)}
LISTS = [data(3, 4, low=0.5, seed=1), data(5, low=0.5, seed=2), data(low=0.5, seed=3)]
OTHERS = [data(3, 4, low=0.5, seed=4), data(5, low=0.5, seed=5), data(low=0.5, seed=6)]
MORE = [data(3, 4, low=0.5, seed=7), data(5, low=0.5, seed=8), data(low=0.5, seed=9)]
FACTORS = [0.5, 2.0, 3.0]


def inplace(module: Any, name: str, tensors: list[Any], *rest: Any, **options: Any) -> Any:
    """The in-place form on copies: it returns the very list it was given."""
    copies = [t.clone() for t in tensors]
    returned = getattr(module, name)(copies, *rest, **options)
    assert returned is copies
    return copies


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    low, high = POSITIVE.get(name, (-2.0, 2.0))
    lists = [data(3, 4, low=low, high=high), data(low=low, high=high), data(0, 2)]
    # PyTorch's second derivative of abs is a tensor without memory, which cannot be compared.
    check(lambda m, x: getattr(m, f"_foreach_{name}")(x), lists, nodes=False, second=name != "abs")
    check(lambda m, x: inplace(m, f"_foreach_{name}_", x), lists, nodes=False, second=False)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum"])
def test_binary(name: str) -> None:
    # PyTorch has no derivative for these two in place.
    grad = name not in ("maximum", "minimum")
    for second in (0.75, 2, FACTORS):
        check(lambda m, x, s=second: getattr(m, f"_foreach_{name}")(x, s), LISTS, nodes=False)
        check(lambda m, x, s=second: inplace(m, f"_foreach_{name}_", x, s), LISTS, nodes=False, grad=grad)
    check(lambda m, x, y: getattr(m, f"_foreach_{name}")(x, y), LISTS, OTHERS, nodes=False)
    check(lambda m, x, y: inplace(m, f"_foreach_{name}_", x, y), LISTS, OTHERS, nodes=False, grad=grad)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_alpha(name: str) -> None:
    check(lambda m, x, y: getattr(m, f"_foreach_{name}")(x, y, alpha=0.3), LISTS, OTHERS, nodes=False)
    check(lambda m, x, y: inplace(m, f"_foreach_{name}_", x, y, alpha=0.3), LISTS, OTHERS, nodes=False)


@pytest.mark.parametrize("name", ["add", "mul", "div"])
def test_tensor_operand(name: str) -> None:
    check(lambda m, x, y: getattr(m, f"_foreach_{name}")(x, y), LISTS, data(low=0.5), grad=False)
    check(lambda m, x, y: inplace(m, f"_foreach_{name}_", x, y), LISTS, data(low=0.5), grad=False)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_pointwise(name: str) -> None:
    # PyTorch's derivative of addcdiv on lists that hold a 0-d tensor fails on its own account.
    grad = name == "addcmul"
    for value in (1, 0.3, FACTORS):
        check(lambda m, x, y, z, v=value: getattr(m, f"_foreach_{name}")(x, y, z, v), LISTS, OTHERS, MORE, nodes=False,
              grad=grad)
        check(lambda m, x, y, z, v=value: inplace(m, f"_foreach_{name}_", x, y, z, v), LISTS, OTHERS, MORE,
              nodes=False, grad=grad)
    check(lambda m, x, y, z: getattr(m, f"_foreach_{name}")(x, y, z, m.tensor(FACTORS)), LISTS, OTHERS, MORE,
          grad=False)
    check(lambda m, x, y, z: getattr(m, f"_foreach_{name}")(x, y, z, value=0.3), LISTS, OTHERS, MORE, nodes=False,
          grad=grad)


def test_lerp() -> None:
    for weight in (0.25, 0.75, FACTORS):
        check(lambda m, x, y, w=weight: m._foreach_lerp(x, y, w), LISTS, OTHERS, nodes=False)
        check(lambda m, x, y, w=weight: inplace(m, "_foreach_lerp_", x, y, w), LISTS, OTHERS, nodes=False)
    check(lambda m, x, y, z: m._foreach_lerp(x, y, z), LISTS, OTHERS, MORE, nodes=False)


def test_pow() -> None:
    for exponent in (2, 0.5, FACTORS):
        check(lambda m, x, e=exponent: m._foreach_pow(x, e), LISTS, nodes=False)
        check(lambda m, x, e=exponent: inplace(m, "_foreach_pow_", x, e), LISTS, nodes=False)
    check(lambda m, x, y: m._foreach_pow(x, y), LISTS, OTHERS, nodes=False)
    check(lambda m, x: m._foreach_pow(2.0, x), LISTS, nodes=False)


@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_norm(order: float) -> None:
    check(lambda m, x: m._foreach_norm(x, order), LISTS, nodes=False, second=False)


def test_copy_zero_clone_max_mm() -> None:
    check(lambda m, x, y: inplace(m, "_foreach_copy_", x, y), LISTS, OTHERS, grad=False)
    check(lambda m, x: inplace(m, "_foreach_zero_", x), LISTS, grad=False)
    check(lambda m, x: m._foreach_clone(x), LISTS, nodes=False)
    check(lambda m, x: m._foreach_max(x), LISTS, nodes=False, second=False)
    check(lambda m, x, y: m._foreach_mm(x, y), [data(2, 3)], [data(3, 2)], nodes=False)


@pytest.mark.parametrize("dtype", ["float64", "int64", "bfloat16"])
def test_dtypes(dtype: str) -> None:
    lists = [data(3, dtype=dtype, low=1, high=5), data(2, 2, dtype=dtype, low=1, high=5)]
    check(lambda m, x: m._foreach_add(x, 2), lists, grad=False)
    check(lambda m, x: m._foreach_add(x, 2.5), lists, grad=False)
    check(lambda m, x: m._foreach_mul(x, [2, 3]), lists, grad=False)
    check(lambda m, x, y: m._foreach_add(x, y, alpha=2), lists, lists, grad=False)


ERRORS: list[Callable[[Any, Any], Any]] = [
    lambda m, x: m._foreach_add([], 1),
    lambda m, x: m._foreach_sqrt([]),
    lambda m, x: m._foreach_add([x], [1, 2]),
    lambda m, x: m._foreach_add([x], [x, x]),
    lambda m, x: m._foreach_addcmul([x], [x, x], [x], 1),
    lambda m, x: m._foreach_addcmul([x], [x], [x], [1.0, 2.0]),
    lambda m, x: m._foreach_addcmul([x], [x], [x], m.tensor([1.0, 2.0])),
    lambda m, x: m._foreach_addcmul([x], [x], [x], m.tensor(1.0)),
    lambda m, x: m._foreach_lerp([x], [x, x], 0.5),
    lambda m, x: m._foreach_copy_([x], [x, x]),
    lambda m, x: m._foreach_mul([x], m.tensor([1.0, 2.0])),
    lambda m, x: m._foreach_exp(x),
    lambda m, x: m._foreach_add_([m.tensor([1, 2])], 1.5),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int) -> None:
    check_error(ERRORS[number], data(3))
