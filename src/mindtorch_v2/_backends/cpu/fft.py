"""Kernels of the discrete Fourier transform, on np.fft."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# What a normalization number of PyTorch's kernels means.
NONE, BY_ROOT, BY_COUNT = 0, 1, 2


def _scaled(result: Any, count: int, normalization: int, to: np.dtype) -> np.ndarray:
    """The result divided as asked for, in a dtype; NumPy before 2.0 computes in double precision."""
    if normalization == BY_ROOT:
        result = result * (1 / math.sqrt(count))
    elif normalization == BY_COUNT:
        result = result * (1 / count)
    return result.astype(to, copy=False)


def _complex_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.complex64 if dtype.itemsize <= 4 else np.complex128)


def c2c(a: np.ndarray, dim: Any, normalization: int, forward: bool) -> np.ndarray:
    """Complex to complex."""
    if not len(dim):
        return a.copy()
    # Unscaled in both directions: NumPy scales the direction that its `norm` names.
    made = np.fft.fftn(a, axes=dim, norm="backward") if forward else np.fft.ifftn(a, axes=dim, norm="forward")
    return _scaled(made, math.prod(a.shape[d] for d in dim), normalization, a.dtype)


def r2c(a: np.ndarray, dim: Any, normalization: int, onesided: bool) -> np.ndarray:
    """Real to complex; one-sided, the last dimension keeps only what the other half does not mirror."""
    made = np.fft.rfftn(a, axes=dim) if onesided else np.fft.fftn(a, axes=dim)
    return _scaled(made, math.prod(a.shape[d] for d in dim), normalization, _complex_of(a.dtype))


def c2r(a: np.ndarray, dim: Any, normalization: int, last_dim_size: int) -> np.ndarray:
    """One-sided complex to real."""
    sizes = [a.shape[d] for d in dim[:-1]] + [last_dim_size]
    made = np.fft.irfftn(a, s=sizes, axes=dim, norm="forward")
    return _scaled(made, math.prod(sizes), normalization, a.real.dtype)
