"""Special functions, vectorised: the error function and relatives, the gamma family, Bessel functions of order 0 and 1.

All of them compute in float64 and round the result to the operand's dtype. The Chebyshev coefficients were computed
to 40 digits for the ranges named beside them; together with the identities used they give about 14 digits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebval

from ..._dispatch.promotion import scalar_array
from .elements import DIGAMMA, ERF, LOG_GAMMA, TRIGAMMA, elementwise
from .pointwise import FLOAT32, scratch, unspread, unsupported

Array = Any
Function = Callable[..., Any]

# erf(x) / x for x² in [0, 1].
ERF_NEAR_ZERO = (
    0.9754769393826541, -0.14226120510371365, 0.010035582187599796, -0.0005768764699767485, 2.741993125219606e-05,
    -1.1043175507344507e-06, 3.8488755420345036e-08, -1.1808582533875466e-09, 3.2334215826050907e-11,
    -7.991015947004549e-13, 1.7990725113961456e-14, -3.718635487818693e-16, 7.103599003714253e-18,
)
# exp(x²) erfc(x) (x + 3) for (x - 3) / (x + 3) in [-1, 1], that is x >= 0.
ERFC_SCALED = (
    1.413438223980872, -1.1314768490746974, 0.35410810034248635, -0.08508704009908545, 0.014615273272816639,
    -0.0013795571636296329, -6.429066714315945e-05, 3.9043421097724045e-05, -2.642785074856054e-06,
    -8.239440143910853e-07, 1.3247975697671355e-07, 1.919522515672645e-08, -5.030507163745393e-09,
    -5.842006410267007e-10, 1.8742323910408168e-10, 2.4373672656733487e-11, -6.990943839667697e-12,
    -1.2573115617676e-12, 2.458000580643909e-13, 7.005741632378779e-14, -6.732775694749609e-15,
    -3.843430589415152e-15, 3.3163748896188907e-18, 1.9337385406947118e-16, 1.957552792661546e-17,
)
# log(gamma(2 + z)) / z for z in [-1/2, 1/2].
LGAMMA_NEAR_TWO = (
    0.41418612492156676, 0.16322170068760064, -0.008658972394126285, 0.0006727515726001485, -6.139556963628233e-05,
    6.110065797003576e-06, -6.410003033826223e-07, 6.962242692768951e-08, -7.747248733788217e-09,
    8.774075140687239e-10, -1.0070266869830198e-10, 1.1678602130652374e-11, -1.3656871334744932e-12,
    1.6079351149711552e-13, -1.9039501088488732e-14, 2.2653768767833064e-15, -2.706656814831896e-16,
)
# B(2), B(4), ...: the Bernoulli numbers, for the asymptotic series.
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
# Steps by which arguments are moved up the real line before the asymptotic series is used.
SHIFT = 8
# Arguments of polygamma further below zero than this are reflected.
FEW_TERMS = 30.0
# Elements at a time: ten arrays of so many float64 fit the second-level cache.
BLOCK = 8192
BESSEL_SWITCH = 30.0


def by_blocks(function: Function, a: Array) -> Array:
    """A function of single elements, of a contiguous array block by block."""
    made = np.empty_like(a)
    flat, results = a.reshape(-1), made.reshape(-1)
    for start in range(0, a.size, BLOCK):
        results[start: start + BLOCK] = function(flat[start: start + BLOCK])
    return made


def in_float64(function: Function) -> Function:
    """Decorator: the first array is computed on as float64, the result has its dtype."""

    @functools.wraps(function)
    def kernel(a: Array, *rest: Any) -> Array:
        a = unspread(a)
        if a.dtype.kind == "c":
            raise unsupported(f"{function.__name__.lstrip('_')}_vml_cpu", a.dtype)
        if a.size > BLOCK and a.flags.c_contiguous:
            # Intermediate results are many: they stay in the cache if there is little of each.
            return by_blocks(lambda x: function(x.astype(np.float64, copy=False), *rest), a)
        if a.dtype == np.float64:
            return function(a, *rest)
        return np.asarray(function(a.astype(np.float64), *rest)).astype(a.dtype)

    return kernel


def _erf_near_zero(x: Array) -> Array:
    return x * chebval(np.minimum(x * x, 1.0) * 2.0 - 1.0, ERF_NEAR_ZERO)


def _erfc_positive(x: Array) -> Array:
    """The complement for x >= 0. The square is split so that its rounding does not spoil the exponential."""
    x = np.minimum(x, 40.0)
    head = np.rint(x * 16.0) / 16.0
    decay = np.exp(-head * head) * np.exp(-(x - head) * (x + head))
    return decay * chebval((x - 3.0) / (x + 3.0), ERFC_SCALED) / (x + 3.0)


# atanh(erf(x / √2)) / x as a quotient of polynomials in x², highest power first, fitted for the relative error of erf
# with x² up to 33. Beyond that erf is 1 in float32, and any slope as large as the quotient's gives that.
NORMAL_TOP = (0.0001610151220020104, 0.006966913348806631, 0.09762605227247742, 0.7978846062518747)
NORMAL_BOTTOM = (3.138386133668638e-05, 0.005278253980233537, 0.07681698799186838, 1.0)


def _arrays(coefficients: tuple[float, ...], dtype: np.dtype) -> tuple[Any, ...]:
    return tuple(np.array(c, dtype) for c in coefficients)


NORMAL = {dtype: (_arrays(NORMAL_TOP, dtype), _arrays(NORMAL_BOTTOM, dtype), np.array(50.0, dtype))
          for dtype in (FLOAT32, np.dtype(np.float64))}


def _horner(s: Array, coefficients: tuple[Any, ...]) -> Array:
    first, *middle, last = coefficients
    t = scratch(np.multiply(s, first))
    for c in middle:
        np.add(t, c, t)
        np.multiply(t, s, t)
    return np.add(t, last, t)


def _normal_erf_by_tanh(a: Array) -> Array:
    """`erf(a / √2)` to float32 precision by way of tanh, which has a fast vector form; a fresh array."""
    top, bottom, largest = NORMAL[a.dtype]
    s = scratch(np.multiply(a, a))
    np.minimum(s, largest, out=s)
    t = _horner(s, top)
    np.true_divide(t, _horner(s, bottom), t)
    np.multiply(t, a, t)
    return np.tanh(t, t)


def normal_erf(a: Array) -> Array:
    """`erf(a / √2)` as a fresh array, in float32 within 4 units in the last place."""
    if a.dtype == FLOAT32:
        return _normal_erf_by_tanh(a)
    return np.asarray(_erf(a * scalar_array(math.sqrt(0.5), a.dtype)))


@elementwise(ERF)
def erf(x: Array) -> Array:
    """The error function."""
    x = unspread(x)
    if x.dtype == np.float64 or x.dtype.kind == "c":
        return _erf(x)
    # The fast approximation, evaluated in float64 so that only its own error counts: 2 units in the last place.
    def wide_erf(part: Array) -> Array:
        return _normal_erf_by_tanh(np.asarray(part.astype(np.float64) * math.sqrt(2.0)))

    if x.size > BLOCK and x.flags.c_contiguous:
        return by_blocks(wide_erf, x)
    return wide_erf(x).astype(x.dtype)


@in_float64
def _erf(x: Array) -> Array:
    size = np.abs(x)
    return np.where(size <= 1.0, _erf_near_zero(x), np.copysign(1.0 - _erfc_positive(size), x))


@in_float64
def erfc(x: Array) -> Array:
    """`1 - erf(x)`, accurate where erf is close to 1."""
    tail = _erfc_positive(np.abs(x))
    far = np.where(x < 0, 2.0 - tail, tail)
    return np.where(np.abs(x) <= 0.5, 1.0 - _erf_near_zero(x), far)


@in_float64
def erfinv(y: Array) -> Array:
    """The inverse of erf: an elementary estimate good to 3 digits, then three third-order steps."""
    shape = 0.147
    log = np.log1p(-y * y)
    half = 2.0 / (math.pi * shape) + log / 2.0
    # half - sqrt(half² - log / shape) without cancellation.
    x = np.copysign(np.sqrt(-log / shape / (half + np.sqrt(half * half - log / shape))), y)
    size = np.abs(y)
    for _ in range(3):
        # From the nearer end: the difference of values close to 1 would lose digits.
        distance = np.where(size > 0.5, (1.0 - size) - _erfc_positive(np.abs(x)), np.abs(_erf(x)) - size)
        step = distance * np.copysign(1.0, y) * (math.sqrt(math.pi) / 2.0) * np.exp(x * x)
        x = x - step / (1.0 + x * step)
    x = np.where(size == 0.0, y, x)
    return np.where(size < 1.0, x, np.where(size == 1.0, np.copysign(np.inf, y), np.nan))


def _shift_up(x: Array) -> tuple[Array, Array]:
    """Arguments below 10 moved up by SHIFT, and which they are."""
    small = x < 10.0
    return np.where(small, x + SHIFT, x), small


def _stirling(x: Array) -> Array:
    """log(gamma(x)) for x >= 9 or so."""
    inverse = 1.0 / x
    square = inverse * inverse
    series = np.zeros_like(x)
    for k in range(len(BERNOULLI), 0, -1):
        series = series * square + BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    log = np.log(x)
    return (x - 0.5) * log - x + 0.5 * math.log(2 * math.pi) + series * inverse


def _lgamma_positive(x: Array) -> Array:
    z = np.where(x < 0.5, x, np.where(x < 1.5, x - 1.0, x - 2.0))
    near = z * chebval(np.clip(z, -0.5, 0.5) * 2.0, LGAMMA_NEAR_TWO)
    near = np.where(x < 1.5, near - np.log1p(z), near)
    near = np.where(x < 0.5, near - np.log(x), near)
    moved, small = _shift_up(x)
    product = np.ones_like(x)
    for k in range(SHIFT):
        product = product * np.where(small, x + k, 1.0)
    return np.where(x < 2.5, near, np.where(np.isinf(x), np.inf, _stirling(moved) - np.log(product)))


@elementwise(LOG_GAMMA)
@in_float64
def lgamma(x: Array) -> Array:
    """log |gamma(x)|."""
    negative = x < 0.0
    if not negative.any():
        return _lgamma_positive(x)
    value = _lgamma_positive(np.where(negative, 1.0 - x, x))
    sine = np.abs(np.sin(math.pi * (x - np.rint(x))))
    # By the reflection formula; at the poles the sine is 0 and the result inf.
    value = np.where(negative, math.log(math.pi) - np.log(sine) - value, value)
    return np.where(np.isneginf(x), np.inf, value)


@elementwise(DIGAMMA)
@in_float64
def digamma(x: Array) -> Array:
    """The derivative of log(gamma(x)). At 0 it is an infinity of the opposite sign, at other poles NaN."""
    negative = x < 0.0
    at = np.where(negative, 1.0 - x, x)
    moved, small = _shift_up(at)
    correction = np.zeros_like(x)
    for k in range(SHIFT):
        correction = correction + np.where(small, 1.0 / np.where(small, at + k, 1.0), 0.0)
    square = 1.0 / (moved * moved)
    series = np.zeros_like(x)
    for k in range(len(BERNOULLI), 0, -1):
        series = (series + BERNOULLI[k - 1] / (2 * k)) * square
    value = np.log(moved) - 0.5 / moved - series - correction
    fraction = x - np.rint(x)
    reflected = np.where(fraction == 0, np.nan, value - math.pi / np.tan(math.pi * fraction))
    return np.where(x == 0, np.copysign(np.inf, -x), np.where(negative, reflected, value))


def _order(n: Any) -> int:
    """The number in a 0-d tensor of an integer."""
    if hasattr(n, "__index__") and getattr(n, "ndim", None) == 0:
        return n.__index__()
    raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}")


def polygamma(n: Any, x: Array) -> Array:
    """The n-th derivative of digamma."""
    if type(n) is not int:
        n = _order(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return digamma(x) if n == 0 else _trigamma(x) if n == 1 else _polygamma(x, n)


@elementwise(TRIGAMMA)
def _trigamma(x: Array) -> Array:
    return _polygamma(x, 1)


def _cot_derivative(n: int, x: Array) -> Array:
    """The n-th derivative of pi * cot(pi x), a polynomial in the cotangent."""
    terms = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        terms = np.polynomial.Polynomial([-1.0, 0.0, -1.0]) * terms.deriv()
    away = x - np.round(x)
    whole = terms(1.0 / np.tan(math.pi * np.where(away == 0.0, 0.5, away)))
    return math.pi ** (n + 1) * np.where(away == 0.0, (-1.0) ** n * np.inf, whole)


@in_float64
def _polygamma(x: Array, n: int) -> Array:
    """As below, far below zero by the reflection formula."""
    far = np.isfinite(x) & (x < -FEW_TERMS)
    if not far.any():
        return _polygamma_near(x, n)
    near = _polygamma_near(np.where(far, 1.0 - x, x), n)
    return np.where(far, (-1.0) ** n * near - _cot_derivative(n, np.where(far, x, 0.5)), near)


def _polygamma_near(x: Array, n: int) -> Array:
    """A sum of powers of 1 / (x + k), continued by the Euler-Maclaurin formula where x + k is large enough."""
    terms = 12 + n + math.ceil(max(-float(np.min(x, initial=0.0, where=np.isfinite(x))), 0.0))
    order = n + 1
    total = np.zeros_like(x)
    for k in range(terms):
        total = total + 1.0 / (x + k) ** order
    end = x + terms
    total = total + end ** (1.0 - order) / (order - 1) + 0.5 * end ** (-float(order))
    rising = float(order)
    for k in range(1, len(BERNOULLI) + 1):
        total = total + BERNOULLI[k - 1] / math.factorial(2 * k) * rising * end ** float(1 - order - 2 * k)
        rising *= (order + 2 * k - 1) * (order + 2 * k)
    total = np.where(np.isposinf(x), 0.0, total)
    return (-1.0) ** order * math.factorial(n) * total


def _bessel(x: Array, order: int) -> Array:
    """The modified Bessel function of |x|: a periodic integral near zero, an asymptotic series far away."""
    size = np.abs(x)
    near = np.minimum(size, BESSEL_SWITCH)
    # The integrand is smooth and periodic, so that few equal steps integrate it to the last digit.
    steps = 48
    total = (np.exp(near) + (-1.0) ** order * np.exp(-near)) / 2.0
    for k in range(1, steps):
        cosine = math.cos(math.pi * k / steps)
        total = total + np.exp(near * cosine) * math.cos(math.pi * k * order / steps)
    total = total / steps
    far = np.maximum(size, BESSEL_SWITCH)
    series = term = np.ones_like(far)
    for k in range(1, 25):
        term = term * -(4.0 * order * order - (2 * k - 1) ** 2) / (8.0 * k * far)
        series = series + term
    # Half the exponent at a time: the whole may overflow although the result does not.
    half = np.exp(far / 2.0)
    large = half * (half * series / np.sqrt(2.0 * math.pi * far))
    return np.where(size <= BESSEL_SWITCH, total, np.where(np.isinf(size), np.nan, large))


@in_float64
def i0(x: Array) -> Array:
    """The modified Bessel function of order 0."""
    return _bessel(x, 0)


@in_float64
def i1(x: Array) -> Array:
    """The modified Bessel function of order 1."""
    # Near zero the integral cancels; two terms of the series are exact there.
    value = np.copysign(_bessel(x, 1), x)
    return np.where(np.abs(x) < 1e-3, x / 2.0 * (1.0 + x * x / 8.0), value)
