"""Incomplete gamma functions, Hurwitz's zeta function and the multivariate gamma function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .special import BERNOULLI, erfc, lgamma

Array = Any
EPS = 2.0 ** -53
# Above this the uniform expansion's first two terms are exact.
UNIFORM = 1e7


def _log1p_minus(m: Array) -> Array:
    """log(1 + m) - m without cancellation."""
    small = np.abs(m) < 0.25
    at = np.where(small, m, 0.0)
    ratio = at / (2.0 + at)
    square = ratio * ratio
    series = np.zeros_like(at)
    for k in range(16, 0, -1):
        series = (series + 1.0 / (2 * k + 1)) * square
    # log(1 + m) = 2 atanh(m / (2 + m)).
    return np.where(small, 2.0 * ratio * series - at * ratio, np.log1p(m) - m)


def _stirling_rest(a: Array) -> Array:
    inverse = 1.0 / a
    series = np.zeros_like(a)
    for k in range(len(BERNOULLI), 0, -1):
        series = series * inverse * inverse + BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    return series * inverse


def _prefactor(a: Array, x: Array) -> Array:
    """x^a exp(-x) / gamma(a + 1)."""
    large = np.maximum(a, 10.0)
    by_stirling = np.exp(large * _log1p_minus((x - large) / large) - _stirling_rest(large)) / np.sqrt(
        2.0 * math.pi * large)
    direct = np.exp(a * np.log(x) - x - lgamma(a + 1.0))
    return np.where(a >= 10.0, by_stirling, direct)


def _lower_series(a: Array, x: Array) -> Array:
    total = term = np.ones_like(a)
    n = 0
    while np.any(np.abs(term) > np.abs(total) * EPS):
        n += 1
        term = term * x / (a + n)
        total = total + term
    return total


def _upper_fraction(a: Array, x: Array) -> Array:
    """The continued fraction of the complement by Lentz's method."""
    tiny = 1e-300
    b = x + 1.0 - a
    c = np.full_like(a, 1.0 / tiny)
    d = 1.0 / b
    value = d
    n = 0
    step = np.zeros_like(a)
    while np.any(np.abs(step - 1.0) > 4.0 * EPS) and n < 100_000:
        n += 1
        factor = -n * (n - a)
        b = b + 2.0
        d = 1.0 / np.where((e := factor * d + b) == 0.0, tiny, e)
        c = np.where((e := b + factor / c) == 0.0, tiny, e)
        step = c * d
        value = value * step
    return value


def _uniform(a: Array, x: Array) -> Array:
    """The complement for large a."""
    m = (x - a) / a
    half_square = -_log1p_minus(m)
    eta = np.copysign(np.sqrt(2.0 * half_square), m)
    near = np.abs(eta) < 1e-3
    safe = np.where(near, 1.0, eta)
    first = np.where(near, -1.0 / 3.0 + eta / 12.0 - 2.0 * eta * eta / 135.0,
                     1.0 / np.where(near, 1.0, m) - 1.0 / safe)
    return erfc(eta * np.sqrt(a / 2.0)) / 2.0 + np.exp(-a * half_square) / np.sqrt(2.0 * math.pi * a) * first


def incomplete(a: Array, x: Array) -> tuple[Array, Array]:
    """The regularised lower and upper incomplete gamma functions."""
    a, x = np.broadcast_arrays(a, x)
    proper = np.isfinite(a) & np.isfinite(x) & (a > 0) & (x > 0)
    huge = proper & (a > UNIFORM)
    by_series = proper & ~huge & (x <= np.maximum(a, 1.0) + 1.0)
    by_fraction = proper & ~huge & ~by_series
    lower, upper = np.full(a.shape, np.nan), np.full(a.shape, np.nan)
    p, q = a[by_series], x[by_series]
    lower[by_series] = _prefactor(p, q) * _lower_series(p, q)
    upper[by_series] = 1.0 - lower[by_series]
    p, q = a[by_fraction], x[by_fraction]
    upper[by_fraction] = _prefactor(p, q) * p * _upper_fraction(p, q)
    lower[by_fraction] = 1.0 - upper[by_fraction]
    upper[huge] = _uniform(a[huge], x[huge])
    lower[huge] = 1.0 - upper[huge]
    _edges(a, x, lower, upper)
    return lower, upper


def _edges(a: Array, x: Array, lower: Array, upper: Array) -> None:
    def put(where: Array, low: float) -> None:
        lower[where], upper[where] = low, 1.0 - low

    put((a > 0) & (x == 0), 0.0)
    put((a == 0) & (x > 0), 1.0)
    put((a >= 0) & np.isfinite(a) & np.isposinf(x), 1.0)
    put(np.isposinf(a) & (x >= 0) & np.isfinite(x), 0.0)


def zeta(s: Array, q: Array) -> Array:
    """Hurwitz's zeta function, the sum of (q + k)^-s, by the Euler-Maclaurin formula."""
    s, q = np.broadcast_arrays(s, q)
    proper = (s > 1) & np.isfinite(s) & np.isfinite(q) & ((q > 0) | ((q != np.floor(q)) & (s == np.floor(s))))
    power, start = np.where(proper, s, 2.0), np.where(proper, q, 1.0)
    terms = 12 + math.ceil(max(0.0, -float(np.min(start, initial=0.0))))
    if terms > 100_000:
        raise NotImplementedError(f"zeta(s, {float(np.min(start)):g}): arguments this far below zero are not supported")
    total = np.zeros_like(start)
    for k in range(terms):
        total = total + (start + k) ** -power
    end = start + terms
    tail = end ** -power
    total = total + end * tail / (power - 1.0) + 0.5 * tail
    rising = power
    scale = tail / end
    for k in range(1, len(BERNOULLI) + 1):
        total = total + BERNOULLI[k - 1] / math.factorial(2 * k) * rising * scale
        rising = rising * (power + 2 * k - 1) * (power + 2 * k)
        scale = scale / (end * end)
    value = np.where(proper, total, np.nan)
    value = np.where((s > 1) & (q <= 0) & (q == np.floor(q)), np.inf, value)
    return np.where(s == 1, np.inf, value)


def mvlgamma(x: Array, p: int) -> Array:
    """The logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    total = np.full(x.shape, p * (p - 1) / 4.0 * math.log(math.pi))
    for k in range(p):
        total = total + lgamma(x - k / 2.0)
    return total
