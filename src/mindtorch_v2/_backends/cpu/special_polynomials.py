"""Orthogonal polynomials of a given degree, by their recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Recurrence = Callable[[int, Array, Array, Array], Array]
# Above these degrees PyTorch gives up on Hermite polynomials.
HERMITE_LIMIT = {np.dtype(np.float32): 128, np.dtype(np.float64): 512}
# Degrees are 64-bit integers in PyTorch; larger ones count as negative.
BEYOND = 2.0**63


def polynomial(x: Array, n: Array, first: Callable[[Array], Array], recurrence: Recurrence) -> Array:
    """The polynomial of each degree at each point: 0 below degree 0, 1 at it, `first(x)` above, then the recurrence.

    `recurrence(k, x, p, q)` gives degree k + 1 from the degrees k and k - 1. What has become NaN stays it, so huge
    degrees end soon.
    """
    x, n = np.broadcast_arrays(x, n)
    degree = np.where(abs(n) < BEYOND, np.trunc(n), -1.0)
    before, current = np.ones(x.shape), first(x.astype(np.float64))
    value = np.where(degree == 0, before, np.where(degree > 0, current, 0.0))
    for k in range(1, int(np.max(degree, initial=0.0))):
        before, current = current, recurrence(k, x, current, before)
        left = degree > k
        value = np.where(left, current, value)
        if not np.any(left & ~np.isnan(current)):
            break
    return value


def chebyshev(kind: str, shifted: bool) -> Callable[[Array, Array], Array]:
    """Chebyshev polynomials of the kinds t, u, v and w."""
    shift = {"t": 0.0, "u": 0.0, "v": -1.0, "w": 1.0}[kind]
    scale = 1.0 if kind == "t" else 2.0

    def kernel(x: Array, n: Array) -> Array:
        at, n = np.broadcast_arrays(2.0 * x - 1.0 if shifted else x, n)
        bounded = (n > 8) & (abs(at) <= 1) & (n < BEYOND)
        made = polynomial(at, np.where(bounded, 0.0, n), lambda t: scale * t + shift,
                          lambda k, t, p, q: 2.0 * t * p - q)
        return np.where(bounded, between_ones(kind, at, np.trunc(n)), made) if bounded.any() else made

    return kernel


def between_ones(kind: str, x: Array, n: Array) -> Array:
    """Chebyshev polynomials of high degrees from -1 to 1, where they are ratios of sines and cosines."""
    angle = np.arccos(np.clip(x, -1.0, 1.0))
    even = np.where(n % 2 == 0, 1.0, -1.0)
    ends = {"t": (1.0, even), "u": (n + 1, even * (n + 1)), "v": (1.0, even * (2 * n + 1)), "w": (2 * n + 1, even)}
    if kind == "t":
        inside = np.cos(n * angle)
    elif kind == "u":
        inside = np.sin((n + 1) * angle) / np.sin(angle)
    elif kind == "v":
        inside = np.cos((n + 0.5) * angle) / np.cos(angle / 2)
    else:
        inside = np.sin((n + 0.5) * angle) / np.sin(angle / 2)
    return np.where(x >= 1, ends[kind][0], np.where(x <= -1, ends[kind][1], inside))


def hermite(physicists: bool) -> Callable[[Array, Array], Array]:
    """Hermite polynomials, the physicists' or the probabilists'."""
    factor = 2.0 if physicists else 1.0

    def kernel(x: Array, n: Array) -> Array:
        return polynomial(x, n, lambda t: factor * t, lambda k, t, p, q: factor * (t * p - k * q))

    return kernel


def laguerre(x: Array, n: Array) -> Array:
    """Laguerre polynomials."""
    return polynomial(x, n, lambda t: 1.0 - t, lambda k, t, p, q: ((2 * k + 1 - t) * p - k * q) / (k + 1))


def legendre(x: Array, n: Array) -> Array:
    """Legendre polynomials."""
    return polynomial(x, n, lambda t: t, lambda k, t, p, q: ((2 * k + 1) * t * p - k * q) / (k + 1))
