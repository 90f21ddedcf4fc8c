"""The Gaussian error linear unit, exact and approximated by tanh, and its gradient; block by block.

In float32 the exact form is `(a / 2) (1 + tanh(a P(a²)))`: tanh has a fast vector form, and the polynomial P is fitted
to atanh(erf(a / √2)) / a so that the error function is within 6e-8 everywhere, half a unit in its last place. P grows
without bound, so large operands, infinity among them, end at ±1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dispatch.promotion import scalar_array
from . import providers
from .blocks import blocks, fitted, like_block
from .elements import GELU, GELU_SLOPE_OF, GELU_TANH, GELU_TANH_SLOPE
from .pointwise import FLOAT32, ONES, unspread
from .real_floats import floats_only
from .special import normal_erf

Array = Any

GELU_SLOPE = math.sqrt(2.0 / math.pi)
GELU_CUBIC = 0.044715
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
# P, highest power first.
NORMAL = tuple(np.array(c, FLOAT32) for c in (
    1.7561766409508604e-09, -1.3226353184424805e-07, 3.964746590674078e-06, -5.5306204264263776e-05,
    -3.25949534667897e-05, 0.036333084556547775, 0.797884941463747,
))


def _normal_tanh(a: Array, square: Array, t: Array) -> None:
    """`erf(a / √2)` of a float32 array into `t`; its square is given."""
    first, *middle, last = NORMAL
    np.multiply(square, first, t)
    for c in middle:
        np.add(t, c, t)
        np.multiply(t, square, t)
    np.add(t, last, t)
    np.multiply(t, a, t)
    np.tanh(t, t)


def _inner(a: Array, square: Array, t: Array) -> None:
    """`tanh(√(2/π) (a + 0.044715 a³))` into `t`."""
    np.multiply(square, scalar_array(GELU_SLOPE * GELU_CUBIC, a.dtype), t)
    np.add(t, scalar_array(GELU_SLOPE, a.dtype), t)
    np.multiply(t, a, t)
    np.tanh(t, t)


def _twice_share(a: Array, square: Array, t: Array, approximate: str) -> None:
    """From -1 to 1: twice the share of `a` that passes, less 1, into `t`."""
    np.multiply(a, a, square)
    if approximate == "tanh":
        _inner(a, square, t)
    elif a.dtype is FLOAT32:
        _normal_tanh(a, square, t)
    else:
        t[...] = normal_erf(a)


def _check(approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")


@floats_only("GeluKernelImpl")
def gelu(a: Array, approximate: str = "none") -> Array:
    """`a` times the normal distribution function of a, or its approximation by tanh."""
    _check(approximate)
    a = unspread(a)
    made = np.empty_like(a)
    if providers.elements(a):
        providers.native.unary(GELU if approximate == "none" else GELU_TANH, made, a)
        return made
    memory = like_block(a)
    half = scalar_array(0.5, a.dtype)
    for x, t in blocks(a, made):
        square = fitted(memory, x)
        _twice_share(x, square, t, approximate)
        np.add(t, ONES[a.dtype], t)
        np.multiply(t, x, t)
        np.multiply(t, half, t)
    return made


@floats_only("GeluBackwardKernelImpl")
def gelu_backward(grad: Array, a: Array, approximate: str = "none") -> Array:
    """Gradient of `gelu`."""
    _check(approximate)
    made = np.empty_like(a)
    if providers.elements(grad, a):
        providers.native.slope(GELU_SLOPE_OF if approximate == "none" else GELU_TANH_SLOPE, made, grad, a)
        return made
    memory = like_block(a, grad)
    slopes = like_block(a, grad)
    half = scalar_array(0.5, a.dtype)
    for pull, x, t in blocks(grad, a, made):
        square, slope = fitted(memory, x), fitted(slopes, x)
        _twice_share(x, square, t, approximate)
        if approximate == "none":
            np.multiply(square, scalar_array(-0.5, a.dtype), square)
            np.exp(square, square)
            np.multiply(x, scalar_array(2.0 * DENSITY, a.dtype), slope)
            np.multiply(slope, square, slope)
        else:
            # The derivative of the tanh: (1 - t²) times that of its argument.
            np.multiply(square, scalar_array(3.0 * GELU_SLOPE * GELU_CUBIC, a.dtype), slope)
            np.add(slope, scalar_array(GELU_SLOPE, a.dtype), slope)
            np.multiply(t, t, square)
            np.subtract(ONES[a.dtype], square, square)
            np.multiply(slope, square, slope)
            np.multiply(slope, x, slope)
        np.add(t, slope, t)
        np.add(t, ONES[a.dtype], t)
        np.multiply(t, half, t)
        np.multiply(t, pull, t)
    return made
