"""Kernels of the discrete Fourier transform, on np.fft."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
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


def _laid_out(kernel: Callable[..., np.ndarray], spread: bool) -> Callable[..., np.ndarray]:
    """A kernel whose results lie as PyTorch's do: what was transformed is innermost, in the order of its memory.

    With `spread` the last dimension that is transformed stays the last, because it has another size afterwards.
    """

    def run(a: np.ndarray, dim: Any, *rest: Any) -> np.ndarray:
        ndim, steps = a.ndim, a.strides
        dims = [d % ndim for d in dim]
        if a.flags.c_contiguous and dims == list(range(ndim - len(dims), ndim)):
            return kernel(a, dims, *rest)
        ordered = sorted(dims[:-1], key=lambda d: -steps[d]) + dims[-1:] if spread else sorted(
            dims, key=lambda d: -steps[d])
        order = sorted((d for d in range(ndim) if d not in dims), key=lambda d: -steps[d]) + ordered
        # Lines that lie together are transformed so much faster that the copy pays for itself.
        made = kernel(np.ascontiguousarray(a.transpose(order)), list(range(ndim - len(dims), ndim)), *rest)
        return made.transpose(np.argsort(order))

    return run


def _complex_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.complex64 if dtype.itemsize <= 4 else np.complex128)


def _c2c(a: np.ndarray, dim: Any, normalization: int, forward: bool) -> np.ndarray:
    sizes = tuple([a.shape[d] for d in dim])
    if providers.spectra(a, sizes):
        return _each(COMPLEX_TO_COMPLEX, np.empty(a.shape, a.dtype), a, [d % a.ndim for d in dim], not forward,
                     _scale(math.prod(sizes), normalization))
    # Unscaled in both directions: NumPy scales the direction that its `norm` names.
    made = np.fft.fftn(a, axes=dim, norm="backward") if forward else np.fft.ifftn(a, axes=dim, norm="forward")
    return _scaled(made, math.prod(sizes), normalization, a.dtype)


def _r2c(a: np.ndarray, dim: Any, normalization: int, onesided: bool) -> np.ndarray:
    sizes = tuple([a.shape[d] for d in dim])
    if providers.spectra(a, sizes):
        dims, shape = [d % a.ndim for d in dim], list(a.shape)
        if onesided:
            shape[dims[-1]] = sizes[-1] // 2 + 1
        return _each(REAL_TO_HALF if onesided else REAL_TO_FULL, np.empty(shape, np.complex64), a, dims, False,
                     _scale(math.prod(sizes), normalization))
    made = np.fft.rfftn(a, axes=dim) if onesided else np.fft.fftn(a, axes=dim)
    return _scaled(made, math.prod(sizes), normalization, _complex_of(a.dtype))


def _c2r(a: np.ndarray, dim: Any, normalization: int, last_dim_size: int) -> np.ndarray:
    sizes = [a.shape[d] for d in dim[:-1]] + [last_dim_size]
    if a.shape[dim[-1]] == last_dim_size // 2 + 1 and providers.spectra(a, tuple(sizes)):
        dims, shape = [d % a.ndim for d in dim], list(a.shape)
        shape[dims[-1]] = last_dim_size
        return _each(HALF_TO_REAL, np.empty(shape, np.float32), a, dims, True, _scale(math.prod(sizes), normalization))
    made = np.fft.irfftn(a, s=sizes, axes=dim, norm="forward")
    return _scaled(made, math.prod(sizes), normalization, a.real.dtype)


_c2c_laid_out, _r2c_laid_out, _c2r_laid_out = _laid_out(_c2c, False), _laid_out(_r2c, True), _laid_out(_c2r, True)


@providers.direct("fft_c2c")
def c2c(a: np.ndarray, dim: Any, normalization: int, forward: bool) -> np.ndarray:
    """Complex to complex."""
    return _c2c_laid_out(a, dim, normalization, forward) if len(dim) else a.copy()


@providers.direct("fft_r2c")
def r2c(a: np.ndarray, dim: Any, normalization: int, onesided: bool) -> np.ndarray:
    """Real to complex; one-sided, the last dimension keeps only what the other half does not mirror."""
    return _r2c_laid_out(a, dim, normalization, onesided)


@providers.direct("fft_c2r")
def c2r(a: np.ndarray, dim: Any, normalization: int, last_dim_size: int) -> np.ndarray:
    """One-sided complex to real."""
    return _c2r_laid_out(a, dim, normalization, last_dim_size)
