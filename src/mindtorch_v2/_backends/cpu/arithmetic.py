"""Arithmetic kernels that differ from NumPy's ufuncs: rounding modes, integer division by zero, powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.promotion import FLOAT_DTYPES, cast, result_dtype, scalar_array, stored_scalar, to_float
from ..._dispatch.steps import step
from . import providers
from .blocks import blocks
from .elements import SUBTRACT, elementwise, multiply, shared, sqrt
from .memory import copy_, empty_beside, to
from .wide import HALVES, in_float32, widened

Array = Any
# Above this size, computing a remainder in float64 is faster; and quotients whose product with a float32 is exact.
MANY_RESTS, EXACT_QUOTIENT = 256, 2.0**28
# The factor that is not given. True and 1.0 equal it, but are refused beside some operands.
ONE = 1


def check_alpha(b: Array, alpha: Any) -> None:
    """Refuse a factor of another kind than the operand."""
    if isinstance(alpha, bool) and b.dtype != np.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and b.dtype not in FLOAT_DTYPES:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and b.dtype.kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def scaled_operand(b: Array, alpha: Any) -> Array:
    """`alpha * b`; a number of a higher kind than the operand's is refused."""
    check_alpha(b, alpha)
    return np.multiply(b, stored_scalar(alpha, b.dtype) if type(alpha) is int else scalar_array(alpha, b.dtype))


def sum_in_float32(a: Array, b: Array, alpha: Any) -> Array:
    """`a + alpha b` of 16-bit floats, rounded once."""
    check_alpha(b, alpha)
    factor = stored_scalar(alpha, b.dtype)
    return np.asarray(widened(a) + widened(factor) * widened(b)).astype(a.dtype)


def subtract(a: Array, b: Array, out: Array | None = None) -> Array:
    """Difference; booleans are refused with PyTorch's advice."""
    if a.dtype == np.bool_:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    return _subtract(a, b) if out is None else np.subtract(a, b, out)


_subtract = shared(np.subtract)
subtract.ufunc = np.subtract  # type: ignore[attr-defined]
difference = elementwise(SUBTRACT, 2)(subtract)


@in_float32
def divide_rounded(a: Array, b: Array, rounding_mode: str | None) -> Array:
    """Quotient rounded toward zero ("trunc") or down ("floor")."""
    if rounding_mode is None:
        return np.true_divide(to_float(a), to_float(b))
    if rounding_mode == "floor":
        return _floor_quotient(a, b, None)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"'{rounding_mode}'"
        )
    if a.dtype in FLOAT_DTYPES:
        return np.trunc(np.true_divide(a, b))
    _refuse_zero(b, "div_trunc_cpu")
    quotient = np.floor_divide(a, b)
    # Floor division rounds down; if signs differ and it was not exact, adding one rounds toward zero.
    inexact = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    return cast(quotient + inexact, a.dtype)


def _refuse_zero(b: Array, kernel: str) -> None:
    if b.dtype.kind == "b":
        raise unsupported(kernel, b.dtype)
    if not np.all(b):
        raise RuntimeError("ZeroDivisionError")


@in_float32
def floor_divide(a: Array, b: Array) -> Array:
    """Quotient rounded down."""
    if a.shape == b.shape or not b.shape:
        return _floor_quotient(a, b, empty_beside(a, a.dtype))
    return _floor_quotient(a, b, None)


def _floor_quotient(a: Array, b: Array, out: Array | None) -> Array:
    if a.dtype not in FLOAT_DTYPES:
        _refuse_zero(b, "div_floor_cpu")
        return np.floor_divide(a, b, out)
    made = np.asarray(np.floor_divide(a, b, out))
    zero = b == 0
    # Divisions by zero give an infinity or NaN.
    return np.true_divide(a, b, made, where=zero) if zero.any() else made


def remainder(a: Array, b: Array) -> Array:
    """Remainder with the divisor's sign."""
    if a.dtype not in FLOAT_DTYPES:
        _refuse_zero(b, "remainder_cpu")
        return np.remainder(a, b)
    if a.shape == b.shape and providers.elements(a, b):
        return providers.native.modulo(a, b, True)
    quick = _quick_rest(a, b, np.floor)
    made = np.asarray(np.remainder(a, b) if quick is None else quick)
    # A zero remainder has the dividend's sign; NumPy's has the divisor's.
    return made if made.dtype.kind == "c" else np.copysign(made, a, out=made, where=made == 0)


def fmod(a: Array, b: Array) -> Array:
    """Remainder with the dividend's sign."""
    if a.dtype not in FLOAT_DTYPES:
        _refuse_zero(b, "fmod_cpu")
        return np.fmod(a, b)
    if a.shape == b.shape and providers.elements(a, b):
        return providers.native.modulo(a, b, False)
    quick = _quick_rest(a, b, np.trunc)
    return np.fmod(a, b) if quick is None else quick


def _quick_rest(a: Array, b: Array, rounding: np.ufunc) -> Array | None:
    """`a - b * rounding(a / b)` of many float32 numbers by one number, exactly; None if that is not certain.

    NumPy divides bit by bit. In float64 the rounded quotient, and its product with the divisor, are exact while they
    have few digits. The division itself can only be wrong by reaching the next integer, which the remainder then shows.
    """
    if b.ndim or a.dtype != np.float32 or a.size < MANY_RESTS or not (divisor := abs(float(b))) or math.isinf(divisor):
        return None
    size = max(abs(float(a.max())), abs(float(a.min())))
    if not size < divisor * EXACT_QUOTIENT:
        return None
    by = np.float64(b)
    made = np.empty_like(a)
    for x, y in blocks(a, made):
        wide = x.astype(np.float64)
        rest = np.divide(wide, by)
        rounding(rest, rest)
        np.multiply(rest, by, rest)
        np.subtract(wide, rest, rest)
        if rounding is np.floor:
            signed = rest if by > 0 else -rest
            off = (signed < 0) | (signed >= divisor)
        else:
            off = (np.abs(rest) >= divisor) | (rest * wide < 0)
            np.copysign(rest, wide, rest)
        if off.any():
            return None
        y[...] = rest
    return made


def power(a: Array, b: Array) -> Array:
    """`a ** b`; integers to negative powers are 0 except for 1 and -1, as in PyTorch."""
    kind = a.dtype.kind
    if kind not in "iu":
        if kind == "b":
            raise unsupported("pow", a.dtype)
        return _power(a, b)
    if a.dtype.kind == "u" or np.all(b >= 0):
        return np.power(a, b)
    result = np.power(a, np.maximum(b, 0))
    sign = np.where(b % 2 == 0, 1, a)
    return np.where(b >= 0, result, np.where(a == 1, 1, np.where(a == -1, sign, 0))).astype(a.dtype)


def power_scalar(a: Array, exponent: Any) -> Array:
    """`a ** number`; common exponents use cheaper functions with the same result."""
    if a.dtype.kind in "iub" and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    a = to(a, _result_type(a, exponent))
    if exponent == 1:
        return copy_(np.empty_like(a), a)
    if exponent == 2:
        return multiply(a, a)
    if exponent == 0.5:
        return sqrt(a)
    if exponent == 3:
        return multiply(multiply(a, a), a)
    if exponent == -1 and a.dtype in FLOAT_DTYPES:
        return np.true_divide(np.ones((), a.dtype), a)
    if exponent == -0.5 and a.dtype in FLOAT_DTYPES:
        return np.true_divide(np.ones((), a.dtype), sqrt(a))
    narrow = a.dtype in HALVES or (a.dtype.kind in "iu" and type(exponent) is int)
    return _power(a, (stored_scalar if narrow else scalar_array)(exponent, a.dtype))


_power = shared(np.power)


@step("aten::result_type", "Scalar")
def _result_type(a: Array, number: Any) -> np.dtype:
    return result_dtype([a], [number]).np
