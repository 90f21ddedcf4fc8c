"""Kernels of the discrete Fourier transform, on np.fft."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from . import providers

# The meaning of the normalization numbers of PyTorch's kernels.
NONE, BY_ROOT, BY_COUNT = 0, 1, 2


def _scaled(result: Any, count: int, normalization: int, to: np.dtype) -> np.ndarray:
    """The result divided as requested, in a dtype; NumPy before 2.0 computes in double precision."""
    if normalization == BY_ROOT:
        result = result * (1 / math.sqrt(count))
    elif normalization == BY_COUNT:
        result = result * (1 / count)
    return result.astype(to, copy=False)


# Kinds of transforms in C.
COMPLEX_TO_COMPLEX, REAL_TO_HALF, REAL_TO_FULL, HALF_TO_REAL = range(4)


@functools.lru_cache(maxsize=64)
def _roots(n: int) -> np.ndarray:
    """The complex roots of one, clockwise."""
    return np.exp(-2j * np.pi / n * np.arange(n)).astype(np.complex64)


def _scale(count: int, normalization: int) -> float:
    return 1.0 if normalization == NONE else 1 / (math.sqrt(count) if normalization == BY_ROOT else count)


def _each(kind: int, made: np.ndarray, a: np.ndarray, dims: list[int], inverse: bool, scale: float) -> np.ndarray:
    """A transform of some kind along the last of the dimensions, and of complex numbers along the others."""
    run = providers.native.fourier
    first, *others = dims[::-1]
    n = made.shape[first] if kind == HALF_TO_REAL else a.shape[first]
    if kind == HALF_TO_REAL and others:
        between = np.ascontiguousarray(a).copy()
        for d in others:
            run(COMPLEX_TO_COMPLEX, between, between, _roots(between.shape[d]), d, inverse, 1.0)
        a, others = between, []
    run(kind, made, np.ascontiguousarray(a), _roots(n), first, inverse, scale)
    for d in others:
        run(COMPLEX_TO_COMPLEX, made, made, _roots(made.shape[d]), d, inverse, 1.0)
    return made


def _complex_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.complex64 if dtype.itemsize <= 4 else np.complex128)


@providers.direct("fft_c2c")
def c2c(a: np.ndarray, dim: Any, normalization: int, forward: bool) -> np.ndarray:
    """Complex to complex."""
    if not len(dim):
        return a.copy()
    sizes = tuple([a.shape[d] for d in dim])
    if providers.spectra(a, sizes):
        return _each(COMPLEX_TO_COMPLEX, np.empty(a.shape, a.dtype), a, [d % a.ndim for d in dim], not forward,
                     _scale(math.prod(sizes), normalization))
    # Unscaled in both directions: NumPy scales the direction that its `norm` names.
    made = np.fft.fftn(a, axes=dim, norm="backward") if forward else np.fft.ifftn(a, axes=dim, norm="forward")
    return _scaled(made, math.prod(sizes), normalization, a.dtype)


@providers.direct("fft_r2c")
def r2c(a: np.ndarray, dim: Any, normalization: int, onesided: bool) -> np.ndarray:
    """Real to complex. One-sided, the last dimension keeps only what the other half does not mirror."""
    sizes = tuple([a.shape[d] for d in dim])
    if providers.spectra(a, sizes):
        dims, shape = [d % a.ndim for d in dim], list(a.shape)
        if onesided:
            shape[dims[-1]] = sizes[-1] // 2 + 1
        return _each(REAL_TO_HALF if onesided else REAL_TO_FULL, np.empty(shape, np.complex64), a, dims, False,
                     _scale(math.prod(sizes), normalization))
    made = np.fft.rfftn(a, axes=dim) if onesided else np.fft.fftn(a, axes=dim)
    return _scaled(made, math.prod(sizes), normalization, _complex_of(a.dtype))


@providers.direct("fft_c2r")
def c2r(a: np.ndarray, dim: Any, normalization: int, last_dim_size: int) -> np.ndarray:
    """One-sided complex to real."""
    sizes = [a.shape[d] for d in dim[:-1]] + [last_dim_size]
    if a.shape[dim[-1]] == last_dim_size // 2 + 1 and providers.spectra(a, tuple(sizes)):
        dims, shape = [d % a.ndim for d in dim], list(a.shape)
        shape[dims[-1]] = last_dim_size
        return _each(HALF_TO_REAL, np.empty(shape, np.float32), a, dims, True, _scale(math.prod(sizes), normalization))
    made = np.fft.irfftn(a, s=sizes, axes=dim, norm="forward")
    return _scaled(made, math.prod(sizes), normalization, a.real.dtype)
