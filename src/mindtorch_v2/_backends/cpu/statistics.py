"""Statistics: variance, norms, medians, modes, log-sum-exp."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES, pretty
from ..._dtype import FROM_NUMPY, PROMOTION, dtype
from ..._shape import wrap_dims
from . import providers
from .reduce import (
    INT64,
    Dims,
    add_reduce,
    along,
    checked_dim,
    extent,
    item_step,
    maximum_reduce,
    mean_step,
    minimum_reduce,
    narrowed,
    refuse,
    refuse_empty,
    wide,
)
from .sort import place_of_rank, stable_order, taken_along
from .sums import row_major, sum_of_squares

Array = Any


def real_type(a: Array) -> np.dtype:
    """The dtype of the magnitudes."""
    return FROM_NUMPY[a.dtype].to_real().np


def moments(name: str, *, root: bool, with_mean: bool) -> Callable[..., Any]:
    """Variance or standard deviation over dimensions, in two passes, perhaps with the mean."""

    def kernel(a: Array, dim: Dims, correction: Any, keepdim: bool) -> Any:
        if a.dtype not in FLOAT_DTYPES:
            subject = name if with_mean else "std and var"
            raise RuntimeError(f"{subject} only support floating point and complex dtypes")
        axes = wrap_dims(dim, a.ndim)
        work = wide(a)
        count = extent(a.shape, axes)
        average: Any
        if dim is None and work.dtype.kind == "f" and not with_mean and count:
            average = work.dtype.type(item_step(mean_step(work)))
        else:
            average = np.true_divide(add_reduce(work, axes, None, None, True), work.dtype.type(count))
        centred = np.subtract(work, average)
        square = centred.real**2 + centred.imag**2 if work.dtype.kind == "c" else np.multiply(centred, centred)
        freedom = count - (1 if correction is None else correction)
        if freedom <= 0:
            # The user's line is four frames up: kernel, generated function, public function, user.
            warnings.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
                          "reduction factor (input numel divided by output numel).", UserWarning, stacklevel=4)
            freedom = 0
            if work.dtype.kind == "c":
                # Real and imaginary parts are divided by themselves: one that does not vary gives NaN.
                square = np.where((centred.real == 0).all(axes, keepdims=True) | (centred.imag == 0).all(
                    axes, keepdims=True), np.nan, square).astype(square.dtype)
        result = np.true_divide(row_major(add_reduce(square, axes, None, None, keepdim)), square.dtype.type(freedom))
        if root:
            result = np.sqrt(result)
        result = narrowed(result, real_type(a))
        if not with_mean:
            return result
        return result, narrowed(average if keepdim else np.asarray(average).squeeze(axes), a.dtype)

    return kernel if with_mean else providers.direct(name)(kernel)


@providers.direct("linalg_vector_norm")
def vector_norm(a: Array, order: Any, dim: Dims, keepdim: bool, to: dtype | None) -> Array:
    """The `order`-norm of the elements along dimensions."""
    order = float(order)
    if a.dtype not in FLOAT_DTYPES:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                           f"{pretty(FROM_NUMPY[a.dtype])}")
    if to is not None:
        a = _norm_dtype(a, to)
    axes = wrap_dims(dim, a.ndim)
    if order < 0 or order == math.inf:
        _refuse_empty_norm(a, order, dim, axes)
    result = real_type(a)
    if order == 2 and len(axes) == a.ndim and not keepdim and a.dtype == np.float32 and a.flags.c_contiguous:
        flat = a.reshape(-1)
        return np.sqrt(np.dot(flat, flat))
    if order == 2 and (squares := sum_of_squares(a, axes, keepdim)) is not None:
        return np.sqrt(squares, squares)
    size = np.abs(wide(a))
    if order == 2:
        made = np.sqrt(add_reduce(np.multiply(size, size), axes, None, None, keepdim))
    elif order == 1:
        made = add_reduce(size, axes, None, None, keepdim)
    elif order == 0:
        made = add_reduce(size != 0, axes, size.dtype, None, keepdim)
    elif math.isinf(order):
        made = (maximum_reduce if order > 0 else minimum_reduce)(size, axes, None, None, keepdim)
    else:
        total = add_reduce(np.power(size, size.dtype.type(order)), axes, None, None, keepdim)
        made = np.power(total, size.dtype.type(1.0 / order))
    return narrowed(row_major(made), result)


def _norm_dtype(a: Array, to: dtype) -> Array:
    given = FROM_NUMPY[a.dtype]
    if to.np not in FLOAT_DTYPES:
        raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got {pretty(to)}")
    if given.is_complex != to.is_complex:
        kind = "complex" if given.is_complex else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {pretty(to)}")
    if PROMOTION[given, to] is not to:
        raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({pretty(given)}) should be convertible "
                           f"without narrowing to the specified dtype ({pretty(to)})")
    return a.astype(to.np)


def _refuse_empty_norm(a: Array, order: float, dim: Dims, axes: Sequence[int]) -> None:
    if a.size:
        return
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        raise RuntimeError(f"linalg.vector_norm cannot compute the {order:g} norm on an empty tensor because the "
                           "operation does not have an identity")
    for axis in axes:
        if a.shape[axis] == 0:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {order:g} norm on the dimension {axis}because "
                               "this dimension is empty and the operation does not have an identity")


def dist(a: Array, b: Array, order: Any) -> Array:
    """The norm of a difference."""
    if a.dtype not in FLOAT_DTYPES:
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{pretty(FROM_NUMPY[a.dtype])} instead.")
    return vector_norm(np.subtract(a, b), order, None, False, None)


def logsumexp(a: Array, dim: Dims, keepdim: bool) -> Array:
    """log(sum(exp(a))), shifted by the largest element so that it does not overflow."""
    if dim is None:
        raise TypeError("logsumexp(): argument 'dim' (position 2) must be tuple of ints, not NoneType")
    axes = wrap_dims(dim, a.ndim)
    work = wide(a)
    if not a.size:
        return narrowed(np.log(add_reduce(np.exp(work), axes, None, None, keepdim)), a.dtype)
    top = maximum_reduce(work.real, axes, None, None, True)
    top = np.where(np.isinf(top), np.zeros((), top.dtype), top)
    total = np.log(add_reduce(np.exp(np.subtract(work, top)), axes, None, None, True)) + top
    made = narrowed(total if keepdim else np.asarray(total).squeeze(axes), a.dtype)
    return made if made.flags.c_contiguous else made.copy()


# -- positions in sorted order --------------------------------------------------------------------------------------


def _pick(a: Array, index: Array, axis: int, scalar: bool, keepdim: bool) -> tuple[Array, Array]:
    chosen = taken_along(a, index, axis)
    # The positions may be a window on all sorted ones: the result is in row-major order in its own memory.
    chosen, index = np.ascontiguousarray(chosen), np.array(index, order="C")
    if scalar or not keepdim:
        return chosen.squeeze(axis), index.squeeze(axis)
    return chosen, index


def median_dim(name: str, *, skip_nan: bool) -> Callable[[Array, int, bool], tuple[Array, Array]]:
    """The lower median along a dimension; `median` gives the first NaN if there is one, `nanmedian` skips them."""

    def kernel(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        refuse(a, "median_out", "bc")
        axis = checked_dim(a, dim, name)
        scalar = not a.ndim
        a, axis = along(a, axis)
        count = a.shape[axis]
        if a.dtype not in FLOAT_DTYPES or not (strange := np.isnan(a)).any():
            return _pick(a, place_of_rank(a, axis, (count - 1) // 2), axis, scalar, keepdim)
        valid = count - add_reduce(strange, axis, INT64, None, True)
        # NaNs are sorted to the end, in their original order, so the first NaN stands right after the numbers.
        middle = np.maximum(valid - 1, 0) // 2
        at = middle if skip_nan else np.where(valid == count, middle, np.minimum(valid, count - 1))
        return _pick(a, np.take_along_axis(stable_order(a, axis), at, axis), axis, scalar, keepdim)

    return kernel


def median_all(name: str, *, skip_nan: bool) -> Callable[[Array], Array]:
    """The lower median of all elements; NaN for none."""
    kernel = median_dim(name, skip_nan=skip_nan)

    def whole(a: Array) -> Array:
        refuse(a, "median_cpu", "bc")
        if not a.size:
            return np.asarray(np.nan).astype(a.dtype)
        flat = a.reshape(-1)
        if flat.dtype.kind in "iuf" and not np.isnan(flat).any():
            middle = (flat.size - 1) // 2
            return np.array(np.partition(flat, middle)[middle])
        return kernel(flat, 0, False)[0]

    return whole


def mode(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The most frequent value along a dimension, the smallest of several, at its last occurrence."""
    refuse(a, "mode_cpu", "c")
    axis = checked_dim(a, dim, "mode")
    scalar = not a.ndim
    a, axis = along(a, axis)
    order = np.moveaxis(stable_order(a, axis), axis, -1)
    ordered = np.take_along_axis(np.moveaxis(a, axis, -1), order, -1)
    place = np.arange(a.shape[axis])
    starts = np.ones(ordered.shape, bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    begun = np.maximum.accumulate(np.where(starts, place, 0), -1)
    # The first place where a run reaches the greatest length is the end of the first such run.
    end = np.argmax(place - begun, -1, keepdims=True)
    index = np.moveaxis(np.take_along_axis(order, end, -1), -1, axis)
    return _pick(a, index, axis, scalar, keepdim)


def kthvalue(a: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The k-th smallest along a dimension, counted from 1."""
    refuse(a, "kthvalue_cpu", "bc")
    scalar = not a.ndim
    a, axis = along(a, dim)
    refuse_empty(a, (axis,), "kthvalue")
    if not 1 <= k <= a.shape[axis]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    return _pick(a, place_of_rank(a, axis, k - 1), axis, scalar, keepdim)
