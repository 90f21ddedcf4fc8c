"""Scans: running sums, products and extremes along a dimension."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dtype import HALF_TYPES, dtype
from . import providers
from .blocks import parts
from .reduce import INT64, accumulator, along, narrowed, refuse, wide

Array = Any
SUM, PRODUCT, LOG_OF_EXP = range(3)  # of the kernel in C


def running(name: str, ufunc: np.ufunc) -> Callable[[Array, int, dtype | None], Array]:
    """A running sum or product; float32 is accumulated in float64, as PyTorch does on the CPU."""
    accumulate: Callable[..., Any] = ufunc.accumulate

    def kernel(a: Array, dim: int, to: dtype | None) -> Array:
        shape = a.shape
        a, axis = along(a, dim)
        a, result = accumulator(a, to)
        if result.kind == "b" and shape and a.size:
            raise unsupported(f"{name}_out_cpu", result)
        if a.dtype == result == np.float32 and a.size:
            return _in_double(accumulate, np.ascontiguousarray(a), axis).reshape(shape)
        kind = np.float64 if a.dtype == np.float32 else a.dtype
        return narrowed(accumulate(np.ascontiguousarray(a), axis, kind), result).reshape(shape)

    return kernel


def _in_double(accumulate: Callable[..., Any], a: Array, axis: int) -> Array:
    """A scan of a contiguous float32 array in float64, some rows at a time so that those stay in the cache."""
    if providers.rows(a):
        return providers.native.scan(a, axis, PRODUCT if accumulate == np.multiply.accumulate else SUM)
    made = np.empty_like(a)
    inner = math.prod(a.shape[axis:])
    rows, results = a.reshape(-1, *a.shape[axis:]), made.reshape(-1, *a.shape[axis:])
    for part in parts(len(rows), inner):
        wide = rows[part].astype(np.float64)
        results[part] = accumulate(wide, 1, None, wide)
    return made


cumsum = running("cumsum", np.add)
cumprod = running("cumprod", np.multiply)


def running_extreme(name: str, ufunc: np.ufunc) -> Callable[[Array, int], tuple[Array, Array]]:
    """A running maximum or minimum with the position of its latest occurrence; once there is NaN, it stays."""
    accumulate: Callable[..., Any] = ufunc.accumulate

    def kernel(a: Array, dim: int) -> tuple[Array, Array]:
        refuse(a, f"{name}_cpu", "c")
        shape = a.shape
        if not shape and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        a, axis = along(a if a.flags.c_contiguous else np.ascontiguousarray(a), dim)
        if providers.rows(a):
            found, places = providers.native.scan_extreme(a, axis, ufunc is np.minimum)
            return found.reshape(shape), places.reshape(shape)
        values = narrowed(accumulate(wide(a), axis), a.dtype)
        steps = np.arange(a.shape[axis], dtype=INT64).reshape([-1 if i == axis else 1 for i in range(a.ndim)])
        reached = (a == values) | (a != a)
        index = np.maximum.accumulate(np.where(reached, steps, 0), axis)
        return values.reshape(shape), index.reshape(shape)

    return kernel


def logcumsumexp(a: Array, dim: int) -> Array:
    """log of the running sum of exp."""
    refuse(a, "logcumsumexp_out_cpu", "biu")
    shape = a.shape
    a, axis = along(np.ascontiguousarray(a) if a.ndim else a, dim)
    if a.dtype.kind == "c":
        return _complex_logcumsumexp(a, axis).reshape(shape)
    if a.size and a.ndim and providers.rows(a):
        return providers.native.scan(a, axis, LOG_OF_EXP).reshape(shape)
    work = a.astype(np.float64) if a.dtype in HALF_TYPES or a.dtype == np.float32 else a
    return np.logaddexp.accumulate(work, axis).astype(a.dtype).reshape(shape)


def _complex_logcumsumexp(a: Array, axis: int) -> Array:
    # Step by step, each relative to the larger: imaginary parts keep their turns, and no line is too long for exp.
    made = a.astype(np.complex128)
    lines = (np.moveaxis(made, axis, 0) if a.ndim else made[None])[..., None]
    before = np.full(lines.shape[1:], -np.inf, np.complex128)
    for line in lines:
        larger = np.where(before.real >= line.real, before, line)
        smaller = np.where(before.real >= line.real, line, before)
        alike = (larger.real == smaller.real) & np.isinf(larger.real)
        sums = larger + np.log1p(np.exp(smaller - np.where(alike, 0, larger)))
        sums = np.where(alike, np.where(larger.real < 0, -np.inf, np.log(np.exp(larger) + np.exp(smaller))), sums)
        line[...] = np.where(np.isnan(before) | np.isnan(line), complex(np.nan, np.nan), sums)
        before = line
    return made.astype(a.dtype)
