"""Distances between all rows of two arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES
from . import providers
from .elements import sqrt
from .matmul import mm

Array = Any


def _wide(a: Array) -> Array:
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def _differences(x1: Array, x2: Array) -> Array:
    return x1[..., :, None, :] - x2[..., None, :, :]


def cdist(x1: Array, x2: Array, p: float, compute_mode: int | None) -> Array:
    """The p-norms of all differences of a row of `x1` and a row of `x2`."""
    if p == 2 and x1.ndim == 2 and providers.rows(x1) and providers.rows(x2):
        made = np.empty((len(x1), len(x2)), np.float32)
        providers.native.distances(made, x1, x2, None, None)
        return made
    size = np.abs(_differences(_wide(x1), _wide(x2)))
    if p == 2:
        made = np.sqrt(np.einsum("...i,...i->...", size, size))
    elif p == 1:
        made = size.sum(-1)
    elif p == 0:
        made = (size != 0).sum(-1).astype(size.dtype)
    elif math.isinf(p):
        made = size.max(-1, initial=0)
    else:
        made = np.power(np.power(size, p).sum(-1), 1 / p)
    return made.astype(x1.dtype, copy=False)


def cdist_backward(grad: Array, x1: Array, x2: Array, p: float, distance: Array) -> Array:
    """Gradient of `cdist` for its first operand. A zero distance gives no gradient."""
    if p == 2 and x1.ndim == 2 and all(map(providers.rows, (grad, x1, x2, distance))):
        made = np.empty(x1.shape, np.float32)
        providers.native.distances(made, x1, x2, grad, distance)
        return made
    difference = _differences(_wide(x1), _wide(x2))
    pull, distance = _wide(grad)[..., None], _wide(distance)[..., None]
    if p == 0:
        return np.zeros_like(x1)
    if p == 1:
        made = pull * np.sign(difference)
    elif math.isinf(p):
        made = pull * np.sign(difference) * (np.abs(difference) == distance)
    else:
        slope = np.sign(difference) * np.power(np.abs(difference), p - 1) if p != 2 else difference
        made = np.where((distance == 0) | (difference == 0), 0, pull * slope / np.power(distance, p - 1))
    return made.sum(-2).astype(x1.dtype, copy=False)


def pdist(x: Array, p: float) -> Array:
    """The distances of all pairs of different rows, row by row of the upper triangle."""
    first, second = np.triu_indices(len(x), 1)
    return cdist(x[first][:, None], x[second][:, None], p, None).reshape(-1)


def pdist_backward(grad: Array, x: Array, p: float, distance: Array) -> Array:
    """Gradient of `pdist`: every other row pulls a row, whichever of the two came first."""
    upper = np.triu_indices(len(x), 1)
    pulls, distances = np.zeros((2, len(x), len(x)), x.dtype)
    for square, values in ((pulls, grad), (distances, distance)):
        square[upper] = values
        square += square.T.copy()
    return cdist_backward(pulls, x, x, p, distances)


def euclidean(x1: Array, x2: Array) -> Array:
    """Euclidean distances by `|a|² + |b|² - 2 a·b`: one matrix product."""
    a, b = _wide(x1), _wide(x2)
    ones = np.ones((*a.shape[:-1], 1), a.dtype), np.ones((*b.shape[:-1], 1), b.dtype)
    left = np.concatenate([a * -2, np.einsum("...i,...i->...", a, a)[..., None], ones[0]], -1)
    right = np.concatenate([b, ones[1], np.einsum("...i,...i->...", b, b)[..., None]], -1)
    turned = np.swapaxes(right, -1, -2)
    squared = mm(left, turned) if left.ndim == 2 else np.matmul(left, turned)
    return sqrt(np.maximum(squared, 0, out=squared), squared).astype(x1.dtype, copy=False)
