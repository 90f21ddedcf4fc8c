"""Sums of rows and columns of matrices: in C, or as products with ones, which are faster than NumPy's reductions.

A product adds up elements one after the other; NumPy adds pairwise. Rows longer than `LONG` would lose digits by that
and are left to NumPy, which is fast for them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import providers
from .elements import SQUARES, SUM

Array = Any

LONG = 2048
# Above this size, the preparations are worth it.
MANY = 2048
STRETCH = 1024
INT64 = np.dtype(np.int64)
BLAS_TYPES = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


@functools.lru_cache(maxsize=256)
def ones(count: int, dtype: np.dtype) -> Array:
    """A vector of ones; read-only."""
    made = np.ones(count, dtype)
    made.flags.writeable = False
    return made


def row_sums(rows: Array) -> Array:
    """Sums along dimension 1 of a matrix."""
    if providers.rows(rows):
        return providers.native.reduce(SUM, rows, 1, 1, False)
    count = rows.shape[1]
    if count > LONG or rows.dtype not in BLAS_TYPES:
        return rows.sum(1)
    return rows.dot(ones(count, rows.dtype))


def column_sums(rows: Array) -> Array:
    """Sums along dimension 0 of a matrix."""
    if providers.rows(rows):
        return providers.native.reduce(SUM, rows, 0, 0, False)
    count = rows.shape[0]
    if count > LONG or rows.dtype not in BLAS_TYPES:
        return rows.sum(0)
    return ones(count, rows.dtype).dot(rows)


def channel_sums(x: Array) -> Array:
    """Sums of each channel of `(batch, channels, rest)`."""
    images, channels, rest = x.shape
    return row_sums(x.reshape(images * channels, rest)).reshape(images, channels).sum(0)


def channel_products(a: Array, b: Array) -> Array:
    """Sums of `a * b` of each channel of `(batch, channels, rest)`."""
    images, channels, rest = a.shape
    size = (images * channels, rest)
    return np.einsum("ij,ij->i", a.reshape(size), b.reshape(size)).reshape(images, channels).sum(0)


def _sum_stretches(flat: Array) -> Array:
    """The sum of a vector: stretches by products, their sums pairwise."""
    whole = flat.size - flat.size % STRETCH
    stretches = flat[:whole].reshape(-1, STRETCH).dot(ones(STRETCH, flat.dtype))
    return stretches.sum() + flat[whole:].sum() if whole < flat.size else stretches.sum()


def row_major(a: Array) -> Array:
    """The result of a reduction in row-major order; NumPy leaves the kept dimensions in their order."""
    return a if a.ndim < 2 else np.ascontiguousarray(a)


def _sum_parts(a: Array, axes: list[int], keepdim: bool) -> Array:
    """Sums over the last dimensions and others, such as those of each channel: the last ones first."""
    first = a.ndim - 1
    while first - 1 in axes:
        first -= 1
    part = providers.native.reduce(SUM, a, first, a.ndim - 1, False)
    total = sum_over(part, tuple(axis for axis in axes if axis < first), False)
    return total.reshape([1 if i in axes else n for i, n in enumerate(a.shape)]) if keepdim else total


def sum_integers(a: Array, axes: tuple[int, ...], keepdim: bool) -> Array:
    """Sums of an int64 array over dimensions, each given once and not negative."""
    count = len(axes)
    if providers.native is not None and count and min(axes) == a.ndim - count:
        made = providers.native.reduce(SUM, a, a.ndim - count, a.ndim - 1, keepdim)
        if made is not None:
            return made
    return row_major(np.add.reduce(a, axes, INT64, None, keepdim))


def sum_of_squares(a: Array, axes: Sequence[int], keepdim: bool) -> Array | None:
    """Sums of a float32 array over neighbouring dimensions, by the C kernels; None for cases that they do not take."""
    if not axes or a.size < MANY or not providers.rows(a) or max(axes) - min(axes) + 1 != len(axes):
        return None
    return providers.native.reduce(SQUARES, a, min(axes), max(axes), keepdim)


def sum_over(a: Array, axes: tuple[int, ...] | None, keepdim: bool) -> Array:
    """Sums of a float32 array over dimensions, each given once and not negative; None is all."""
    if not a.flags.c_contiguous:
        return row_major(np.add.reduce(a, axes, None, None, keepdim))
    if a.size < MANY:
        return np.add.reduce(a, axes, None, None, keepdim)
    ndim = a.ndim
    if providers.rows(a):
        first, last = (0, ndim - 1) if axes is None else (min(axes, default=0), max(axes, default=-1))
        if last - first + 1 == (ndim if axes is None else len(axes)) > 0:
            return providers.native.reduce(SUM, a, first, last, keepdim)
        if axes and last == ndim - 1:
            return _sum_parts(a, sorted(axes), keepdim)
    if axes is None or len(axes) == ndim:
        total = _sum_stretches(a.reshape(-1))
        return np.full((1,) * ndim, total) if keepdim else total
    first, count = min(axes, default=0), len(axes)
    if count and max(axes) - first + 1 == count and (first == 0 or first + count == ndim):
        summed, kept = a.shape[first: first + count], a.shape[:first] + a.shape[first + count:]
        rows = (math.prod(summed), math.prod(kept)) if first == 0 else (math.prod(kept), math.prod(summed))
        made = column_sums(a.reshape(rows)) if first == 0 else row_sums(a.reshape(rows))
        return made.reshape((*a.shape[:first], *(1,) * count, *a.shape[first + count:]) if keepdim else kept)
    return np.add.reduce(a, axes, None, None, keepdim)
