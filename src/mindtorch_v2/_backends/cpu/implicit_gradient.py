"""How a sample moves with its distribution's parameter, for gamma and beta numbers.

A sample x is a fixed quantile: F(x; a) stays, so dx/da = -(dF/da) / f(x). dF/da is the integral of f times the score
of `a` up to x, and because the whole integral of that is zero it may as well be taken from x on. Both integrals are
computed in a variable y in which log f is concave (log t for gamma, logit t for beta): with s such that the log-density
has fallen by 1 at distance s from x, it has fallen by 40 at distance 40 s, and a few Gauss-Legendre panels are exact to
rounding. Dividing by f(x) inside the exponential avoids all overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .special import digamma

Array = Any

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_EDGES = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 40.0])
# Places and weights of all panels together, for s = 1.
PLACES = ((_EDGES[1:, None] + _EDGES[:-1, None]) / 2 + (_EDGES[1:] - _EDGES[:-1])[:, None] / 2 * _NODES).reshape(-1)
WEIGHTS = ((_EDGES[1:] - _EDGES[:-1])[:, None] / 2 * _WEIGHTS).reshape(-1)
CHUNK = 8192
HALVINGS = 40


def _scale(fall: Callable[[Array], Array], count: int) -> Array:
    """The distance at which the concave, falling `fall` reaches -1, found on a logarithmic scale."""
    low, high = np.full(count, -25.0), np.full(count, 12.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        far = fall(np.exp(middle)) <= -1.0
        low, high = np.where(far, low, middle), np.where(far, middle, high)
    return np.exp(high)


def _in_chunks(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply to a few thousand elements at a time: each needs a row of places."""
    flat = [np.array(a, np.float64).reshape(-1) for a in np.broadcast_arrays(*arrays)]
    made = np.empty(flat[0].size)
    for start in range(0, made.size, CHUNK):
        made[start:start + CHUNK] = function(*[a[start:start + CHUNK] for a in flat])
    return made.reshape(np.broadcast_shapes(*[a.shape for a in arrays]))


def _gamma(x: Array, a: Array) -> Array:
    left = x <= a
    sign = np.where(left, -1.0, 1.0)

    def fall(distance: Array) -> Array:
        moved = sign.reshape(-1, *[1] * (distance.ndim - 1)) * distance
        shape = moved.shape[:1] + (1,) * (moved.ndim - 1)
        return a.reshape(shape) * moved - x.reshape(shape) * np.expm1(moved)

    scale = _scale(fall, x.size)
    distance = scale[:, None] * PLACES
    score = np.log(x)[:, None] + sign[:, None] * distance - digamma(a)[:, None]
    total = (np.exp(fall(distance)) * score) @ WEIGHTS * scale
    return x * sign * total


def gamma_gradient(x: Array, a: Array) -> Array:
    """d x / d a of a sample of Gamma(a, 1)."""
    return _in_chunks(_gamma, x, a)


def _beta(x: Array, a: Array, b: Array) -> Array:
    left = x * b <= (1 - x) * a
    sign = np.where(left, -1.0, 1.0)
    # Towards the left t shrinks with rate `near`, towards the right 1 - t does.
    y = np.log(x) - np.log1p(-x)

    def logs(distance: Array) -> tuple[Array, Array]:
        column = (slice(None),) + (None,) * (distance.ndim - 1)
        moved = y[column] + sign[column] * distance
        return -np.logaddexp(0.0, -moved), -np.logaddexp(0.0, moved)

    log_x, log_rest = -np.logaddexp(0.0, -y), -np.logaddexp(0.0, y)

    def fall(distance: Array) -> Array:
        column = (slice(None),) + (None,) * (distance.ndim - 1)
        log_t, log_complement = logs(distance)
        return a[column] * (log_t - log_x[column]) + b[column] * (log_complement - log_rest[column])

    scale = _scale(fall, x.size)
    distance = scale[:, None] * PLACES
    score = logs(distance)[0] - (digamma(a) - digamma(a + b))[:, None]
    total = (np.exp(fall(distance)) * score) @ WEIGHTS * scale
    return x * (1 - x) * sign * total


def dirichlet_gradient(x: Array, alpha: Array, total: Array) -> Array:
    """d x / d alpha of one coordinate of a Dirichlet sample, divided by 1 - x."""
    x = np.clip(x.astype(np.float64), np.finfo(np.float64).tiny, 1 - 2.0**-53)
    return _in_chunks(_beta, x, alpha, total - alpha) / (1 - x)
