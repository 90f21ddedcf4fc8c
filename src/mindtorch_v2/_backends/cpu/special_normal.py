"""The scaled error function, the normal distribution function and its inverse, and entropies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebval

from .special import ERFC_SCALED, erfc

Array = Any
SQRT_HALF = math.sqrt(0.5)


def erfcx(x: Array) -> Array:
    """exp(x²) erfc(x)."""
    size = np.abs(x)
    capped = np.minimum(size, 1e150)
    above = chebval((capped - 3.0) / (capped + 3.0), ERFC_SCALED) / (capped + 3.0)
    # The series loses its last digits far out, where two terms of the asymptotic one suffice.
    above = np.where(size > 1e4, 1.0 / (math.sqrt(math.pi) * np.where(size > 1e4, size, 1.0)), above)
    head = np.rint(np.minimum(size, 30.0) * 16.0) / 16.0
    rest = np.minimum(size, 30.0) - head
    growth = np.exp(head * head) * np.exp(rest * (2.0 * head + rest))
    return np.where(x >= 0, above, np.where(size > 27.0, np.inf, 2.0 * growth - above)) + np.where(np.isnan(x), x, 0.0)


def log_ndtr(x: Array) -> Array:
    """The logarithm of the normal distribution function."""
    t = x * SQRT_HALF
    below = np.log(erfcx(np.maximum(-t, 0.0)) / 2.0) - t * t
    above = np.log1p(-erfc(np.maximum(t, -1.0)) / 2.0)
    value = np.where(x < -1.0, below, above)
    return np.where(np.isneginf(x), -np.inf, value)


def ndtri(p: Array) -> Array:
    """The inverse of the normal distribution function."""
    low = np.minimum(p, 1.0 - p)
    inside = np.clip(low, 1e-320, 0.5)
    log = np.log(inside)
    # An elementary start, then Newton's method on the logarithm, which is nearly a parabola.
    root = np.sqrt(-2.0 * log)
    x = np.where(inside < 0.2, -(root - np.log(root * math.sqrt(2.0 * math.pi)) / root), -(0.5 - inside) * 2.5)
    for _ in range(7):
        value = log_ndtr(x)
        slope = np.exp(-x * x / 2.0 - value) / math.sqrt(2.0 * math.pi)
        step = (value - log) / slope
        # With the second derivative of the logarithm: third order.
        x = x - step / (1.0 + 0.5 * step * (x + slope))
    x = np.where(low == 0.5, 0.0, x)
    value = np.where(p > 0.5, -x, x)
    value = np.where(p == 0.0, -np.inf, np.where(p == 1.0, np.inf, value))
    return np.where((p < 0.0) | (p > 1.0) | np.isnan(p), np.nan, value)


def entr(x: Array) -> Array:
    """-x log(x), 0 at 0, -inf below."""
    inside = np.where(x > 0, x, 1.0)
    return np.where(x > 0, -inside * np.log(inside), np.where(x == 0, 0.0, np.where(np.isnan(x), np.nan, -np.inf)))


def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y), 0 where x is 0 unless y is NaN."""
    return np.where((x == 0) & ~np.isnan(y), np.zeros((), x.dtype), x * np.log1p(y))
