"""Element-by-element kernels that differ from NumPy's ufuncs, or have none."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.promotion import FLOAT_DTYPES, pretty, scalar_array
from ..._dispatch.steps import step
from ..._dtype import FROM_NUMPY, DefaultDtype
from ..._shape import broadcast_shapes
from .elements import ABS, NEG, RECIPROCAL, RSQRT, SIGMOID, SIGN, elementwise, formula, shared
from .memory import empty

Array = Any
Function = Callable[..., Any]

FLOAT32 = np.dtype(np.float32)
COMPLEX_OF: dict[np.dtype, np.dtype] = {FLOAT32: np.dtype("complex64"), np.dtype("float64"): np.dtype("complex128")}
ONES = {dtype: np.ones((), dtype) for dtype in FROM_NUMPY}
ZEROS = {dtype: np.zeros((), dtype) for dtype in FROM_NUMPY}


def widened(function: Function) -> Function:
    """Decorator: 16-bit floats are computed in float32 and rounded once at the end."""

    @functools.wraps(function)
    def kernel(a: Array, *rest: Any) -> Array:
        dtype = a.dtype
        if dtype is FLOAT32 or dtype.itemsize != 2 or dtype not in FLOAT_DTYPES:
            return function(a, *rest)
        rest = tuple(b.astype(FLOAT32) if isinstance(b, np.ndarray) and b.dtype == dtype else b for b in rest)
        return np.asarray(function(a.astype(FLOAT32), *rest)).astype(dtype)

    return kernel


def broadcasting(function: Function) -> Function:
    """Decorator: reports shapes that do not fit together in PyTorch's words."""

    @functools.wraps(function)
    def kernel(*args: Any) -> Array:
        try:
            return function(*args)
        except ValueError:
            broadcast_shapes(*(a.shape for a in args if isinstance(a, np.ndarray)))
            raise

    return kernel


def keeps_integers(name: str, function: Function) -> Function:
    """A rounding function: integers are copied, booleans and complex numbers refused."""
    function = shared(function)

    def kernel(a: Array) -> Array:
        if a.dtype.kind in "iu":
            return a.copy("K")
        if a.dtype.kind == "b":
            raise unsupported(f"{name}_vml_cpu", a.dtype)
        if a.dtype.kind == "c":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        return function(a)

    return kernel


def real_floats(name: str, function: Function) -> Function:
    """A kernel for real floating types only."""

    def kernel(a: Array, *rest: Any) -> Array:
        if a.dtype not in FLOAT_DTYPES or a.dtype.kind == "c":
            raise unsupported(name, a.dtype)
        return function(a, *rest)

    return kernel


# -- signs and rounding --------------------------------------------------------------------------------------------


_negative = shared(np.negative)


@elementwise(NEG)
def negative(a: Array) -> Array:
    """`-a`; booleans are refused with PyTorch's advice."""
    if a.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return _negative(a)


def sign(a: Array) -> Array:
    """-1, 0 or 1; the sign of NaN is 0."""
    kind = a.dtype.kind
    if kind == "c":
        raise NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                                  "torch.sgn instead.")
    if kind == "b":
        return unspread(a).copy("K")
    if a.dtype is FLOAT32 and (made := formula(SIGN, a)) is not None:
        return made
    found = np.sign(a)
    if kind not in "iu" and (strange := np.isnan(found)).any():
        return np.where(strange, ZEROS[a.dtype], found)
    return found


def sgn(a: Array) -> Array:
    """The sign; of a complex number, the number of modulus 1 in its direction."""
    if a.dtype.kind != "c":
        return sign(a)
    size = np.abs(a)
    return np.where(size == 0, ZEROS[a.dtype], a / np.where(size == 0, ONES[size.dtype], size))


def signbit(a: Array) -> Array:
    """Whether the sign bit is set."""
    if a.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return np.signbit(a) if a.dtype in FLOAT_DTYPES else a < ZEROS[a.dtype]


def unspread(a: Array) -> Array:
    """The array, or a copy if it repeats memory: NumPy would put repeated dimensions innermost in similar results."""
    return np.ascontiguousarray(a) if 0 in a.strides else a


def absolute(a: Array) -> Array:
    """The absolute value; of a complex number, its modulus."""
    a = unspread(a)
    if a.dtype.kind == "b":
        raise unsupported("abs_cpu", a.dtype)
    if a.dtype.kind == "c":
        return np.abs(a)
    # The result has the operand's layout.
    return _absolute_into(a, empty(a.shape, a.dtype) if a.flags.c_contiguous else np.empty_like(a, subok=False))


def absolute_inplace(a: Array) -> Array:
    """`absolute` into its argument, which cannot be complex: the modulus is real."""
    if a.dtype.kind == "c":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    if a.dtype.kind == "b":
        raise unsupported("abs_cpu", a.dtype)
    return _absolute_into(a, a)


_plain_absolute = elementwise(ABS)(np.abs)
_absolute_into = step("aten::abs", "out")(lambda a, out: _plain_absolute(a, out))


@widened
def round_decimals(a: Array, decimals: int) -> Array:
    """Rounded, half to even, after the given number of decimals; a negative number rounds to tens, hundreds, …"""
    if a.dtype not in FLOAT_DTYPES:
        raise unsupported("round_cpu", a.dtype)
    if decimals == 0:
        return np.rint(a)
    power = scalar_array(10.0 ** abs(decimals), a.dtype)
    return np.rint(a * power) / power if decimals > 0 else np.rint(a / power) * power


def fraction(a: Array) -> Array:
    """The part after the point, with the sign of the number."""
    if a.dtype not in FLOAT_DTYPES:
        raise unsupported("frac_cpu", a.dtype)
    return np.subtract(a, np.trunc(a))


# -- functions -----------------------------------------------------------------------------------------------------


def scratch(value: Any) -> Array:
    """A writable result: NumPy gives scalars for 0-d operands."""
    return value if value.shape else np.asarray(value)


def log1p(a: Array, out: Array | None = None) -> Array:
    """`log(1 + a)`, also where `a` is complex and small: NumPy's loses the real part there."""
    if a.dtype.kind != "c":
        return _log1p(a) if out is None else np.log1p(a, out=out)
    x, y = a.real.astype(np.float64), a.imag.astype(np.float64)
    near = np.abs(x) + np.abs(y) < 0.5
    parts = np.where(near, 0.5 * np.log1p(np.where(near, x * (x + 2) + y * y, 0)), np.log(np.hypot(1 + x, y)))
    made = np.empty(a.shape, a.dtype) if out is None else out
    made.real, made.imag = parts, np.arctan2(y, 1 + x)
    return made


_log1p = shared(np.log1p)
log1p.ufunc = np.log1p  # type: ignore[attr-defined]


@elementwise(RSQRT)
@widened
def rsqrt(a: Array) -> Array:
    """`1 / sqrt(a)`."""
    return np.true_divide(ONES[a.dtype], np.sqrt(a))


@elementwise(RECIPROCAL)
@widened
def reciprocal(a: Array) -> Array:
    """`1 / a`."""
    return np.true_divide(ONES[a.dtype], a)

@elementwise(SIGMOID)
@widened
def sigmoid(a: Array) -> Array:
    """`1 / (1 + exp(-a))`."""
    t = scratch(np.negative(a))
    np.exp(t, t)
    one = ONES[t.dtype]
    np.add(t, one, t)
    return np.true_divide(one, t, t)


@widened
def sinc(a: Array) -> Array:
    """`sin(πa) / πa`, 1 at 0."""
    angle = a * scalar_array(math.pi, a.dtype)
    zero = a == 0
    return np.where(zero, ONES[a.dtype], np.sin(angle) / np.where(zero, ONES[a.dtype], angle))


@widened
def logit(a: Array, eps: float | None) -> Array:
    """`log(a / (1 - a))`, with the argument limited to `eps` from 0 and 1."""
    if eps is not None:
        a = np.clip(a, scalar_array(eps, a.dtype), scalar_array(1.0 - eps, a.dtype))
    return np.log(a / (ONES[a.dtype] - a))


@widened
def logit_backward(grad: Array, a: Array, eps: float | None) -> Array:
    """Gradient of `logit`: 0 outside the limits, NaN outside [0, 1] without limits."""
    inside = (a >= scalar_array(0.0 if eps is None else eps, a.dtype)) & (
        a <= scalar_array(1.0 if eps is None else 1.0 - eps, a.dtype))
    outside = np.array(np.nan if eps is None else 0.0, a.dtype)
    return np.where(inside, grad / (a * (ONES[a.dtype] - a)), outside)


@widened
def multiply_by(a: Array, factor: float) -> Array:
    """The product with a constant, in float32 or wider."""
    return np.multiply(a, scalar_array(factor, a.dtype))


def degrees_to_radians(a: Array) -> Array:
    """Radians."""
    if a.dtype.kind == "c":
        raise RuntimeError("deg2rad is not supported for complex tensors.")
    return multiply_by(a, math.pi / 180.0)


def radians_to_degrees(a: Array) -> Array:
    """Degrees."""
    if a.dtype.kind == "c":
        raise RuntimeError("rad2deg is not supported for complex tensors.")
    return multiply_by(a, 180.0 / math.pi)


def is_real(a: Array) -> Array:
    """Whether numbers have no imaginary part."""
    return a.imag == 0 if a.dtype.kind == "c" else np.ones_like(unspread(a), np.bool_)


def nan_to_num(a: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    """NaN and the infinities replaced, by default with 0 and the largest finite numbers."""
    if a.dtype not in FLOAT_DTYPES:
        return unspread(a).copy("K")
    if a.dtype.kind == "c":
        result = np.empty_like(a)
        result.real = nan_to_num(a.real, nan, posinf, neginf)
        result.imag = nan_to_num(a.imag, nan, posinf, neginf)
        return result
    if np.isfinite(a).all():
        return unspread(a).copy("K")
    limits = _limits(a.dtype)
    high = limits if posinf is None else posinf
    low = -limits if neginf is None else neginf
    result = np.where(np.isnan(a), np.array(0.0 if nan is None else float(nan), a.dtype), a)
    result = np.where(np.isposinf(a) if a.dtype.kind == "f" else a == np.inf, np.array(high, a.dtype), result)
    return np.where(np.isneginf(a) if a.dtype.kind == "f" else a == -np.inf, np.array(low, a.dtype), result)


@functools.cache
def _limits(dtype: np.dtype) -> float:
    if dtype.kind == "f":
        return float(np.finfo(dtype).max)
    # bfloat16: seven explicit bits of mantissa and the exponents of float32.
    return float((2.0 - 2.0**-7) * 2.0**127)


def is_infinity(sign_of: int) -> Function:
    """A test for one of the infinities."""

    def kernel(a: Array) -> Array:
        if a.dtype.kind == "c":
            raise RuntimeError(f"{'isposinf' if sign_of > 0 else 'isneginf'} does not support complex inputs.")
        if a.dtype not in FLOAT_DTYPES:
            return np.zeros_like(a, np.bool_, subok=False)
        return np.equal(a, np.array(sign_of * np.inf, a.dtype))

    return kernel


# -- complex numbers -----------------------------------------------------------------------------------------------


_log10 = shared(np.log10)


def log10(a: Array, out: Array | None = None) -> Array:
    """The logarithm to the base 10. NumPy's loop for float32 misses whole numbers, and `floor` shows that."""
    if a.dtype != FLOAT32:
        return _log10(a) if out is None else _log10(a, out)
    made = np.empty_like(a, order="C" if 0 in a.strides else "K") if out is None else out
    return np.log10(a, made, dtype=np.float64, casting="same_kind")


log10.ufunc = np.log10  # type: ignore[attr-defined]


def angle(a: Array) -> Array:
    """The argument of a complex number; for real ones 0 or π."""
    if a.dtype.kind == "c":
        # In float64, as in `log10`: the angle of 1 + 1j is the float32 next to a quarter of π.
        return np.arctan2(a.imag, a.real, dtype=np.float64).astype(a.real.dtype, copy=False)
    if a.dtype not in FLOAT_DTYPES:
        a = a.astype(DefaultDtype.value.np)
    found = np.where(a < 0, np.array(math.pi, a.dtype), ZEROS[a.dtype])
    return np.where(np.isnan(a), a, found)


@broadcasting
def complex_from_parts(real: Array, imag: Array) -> Array:
    """A complex number from its real and imaginary part."""
    to = _complex_of(real, imag)
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), to)
    result.real, result.imag = real, imag
    return result


@broadcasting
def complex_from_polar(size: Array, argument: Array) -> Array:
    """A complex number from its modulus and argument."""
    to = _complex_of(size, argument)
    result = np.empty(np.broadcast_shapes(size.shape, argument.shape), to)
    result.real, result.imag = size * np.cos(argument), size * np.sin(argument)
    return result


def _complex_of(first: Array, second: Array) -> np.dtype:
    found = COMPLEX_OF.get(first.dtype)
    if found is None or second.dtype not in COMPLEX_OF:
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{pretty(FROM_NUMPY[first.dtype])} and {pretty(FROM_NUMPY[second.dtype])}"
        )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {pretty(FROM_NUMPY[first.dtype])} but got scalar type "
            f"{pretty(FROM_NUMPY[second.dtype])} for second argument"
        )
    return found
