"""Orthogonal polynomials of a given degree, by their recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Recurrence = Callable[[int, Array, Array, Array], Array]
# Above these degrees PyTorch gives up on Hermite polynomials.
HERMITE_LIMIT = {np.dtype(np.float32): 128, np.dtype(np.float64): 512}


def polynomial(x: Array, n: Array, first: Callable[[Array], Array], recurrence: Recurrence) -> Array:
    """The polynomial of each degree at each point: 0 below degree 0, 1 at it, `first(x)` above, then the recurrence.

    `recurrence(k, x, p, q)` gives degree k + 1 from the degrees k and k - 1.
    """
    x, n = np.broadcast_arrays(x, n)
    degree = np.where(np.isfinite(n), np.trunc(n), -1.0)
    before, current = np.ones(x.shape), first(x.astype(np.float64))
    value = np.where(degree == 0, before, np.where(degree > 0, current, 0.0))
    for k in range(1, int(np.max(degree, initial=0.0))):
        before, current = current, recurrence(k, x, current, before)
        value = np.where(degree == k + 1, current, value)
    return value


def chebyshev(kind: str, shifted: bool) -> Callable[[Array, Array], Array]:
    """Chebyshev polynomials of the kinds t, u, v and w."""
    shift = {"t": 0.0, "u": 0.0, "v": -1.0, "w": 1.0}[kind]
    scale = 1.0 if kind == "t" else 2.0

    def kernel(x: Array, n: Array) -> Array:
        at = 2.0 * x - 1.0 if shifted else x
        return polynomial(at, n, lambda t: scale * t + shift, lambda k, t, p, q: 2.0 * t * p - q)

    return kernel


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
