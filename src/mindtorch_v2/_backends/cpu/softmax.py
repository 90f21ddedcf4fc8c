"""Softmax and log-softmax along one dimension. 16-bit floats are computed in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.promotion import REAL_FLOATS
from ..._dtype import HALF_TYPES
from ..._shape import wrap_dim
from . import providers
from .blocks import SpreadInPlace, parts
from .memory import contiguous_step, copy_into
from .reduce import add_reduce, maximum_reduce
from .sums import row_sums

Array = Any
FLOAT32 = np.dtype(np.float32)
# exp(±16) is far from the limits of float32, and the logarithm of a sum of such numbers is as exact as their maximum.
MODERATE = 16.0
# Up to this size, checking whether elements are moderate takes longer than subtracting the maximum.
FEW = 512
# Up to this size, copies into another order stay in the cache.
MANY = 1 << 18


def _prepare(a: Array, dim: int, kernel: str) -> tuple[Array, int]:
    """The operand in the type in which it is computed, 0-d ones as vectors, and the axis."""
    if a.dtype not in REAL_FLOATS:
        raise unsupported(kernel, a.dtype)
    axis = wrap_dim(dim, a.ndim)
    wide = a.astype(np.float32) if a.dtype in HALF_TYPES else a
    return (wide if a.ndim else wide.reshape(1)), axis


def _finish(made: Array, like: Array, half_to_float: bool) -> Array:
    if made.shape != like.shape:
        made = made.reshape(like.shape)
    return made if half_to_float or made.dtype is like.dtype else made.astype(like.dtype, copy=False)


def is_moderate(a: Array) -> bool:
    """Whether exponentials neither overflow nor lose digits without subtracting a row's maximum; NaN is not
    moderate."""
    return a.dtype is FLOAT32 and bool(a.max() <= MODERATE and a.min() >= -MODERATE)


def _exponentials(a: Array, axis: int, made: Array | None = None) -> Array:
    """exp(a - shift) in fresh or given memory: the shift is 0, or the maxima if they matter."""
    if a.size > FEW and is_moderate(a):
        return np.exp(a, made)
    made = np.subtract(a, maximum_reduce(a, axis, None, None, True), made)
    return np.exp(made, made)


def _totals(a: Array, axis: int) -> Array:
    """Sums along an axis that stays."""
    if axis == a.ndim - 1 and a.size and a.flags.c_contiguous:
        return row_sums(a.reshape(-1, a.shape[-1])).reshape(*a.shape[:-1], 1)
    return add_reduce(a, axis, None, None, True)


@providers.direct("softmax")
def softmax(a: Array, dim: int, half_to_float: bool) -> Array:
    """exp(a) / sum(exp(a)), with the maximum subtracted first if the exponentials would be too large or small."""
    return _normalized(a, dim, half_to_float, False)


@providers.direct("log_softmax")
def log_softmax(a: Array, dim: int, half_to_float: bool) -> Array:
    """a - log(sum(exp(a))), with the maximum subtracted first if the exponentials would be too large or small."""
    return _normalized(a, dim, half_to_float, True)


def _normalized(a: Array, dim: int, half_to_float: bool, log: bool) -> Array:
    """Softmax or its logarithm: by the kernel in C, or a few rows at a time, or along another dimension at once."""
    wide, axis = _prepare(a if a.flags.c_contiguous else contiguous_step(a), dim,
                          "log_softmax_lastdim_kernel_impl" if log else "softmax_lastdim_kernel_impl")
    if not a.size:
        return _finish(wide.copy(), a, half_to_float)
    if axis == wide.ndim - 1:
        if providers.rows(wide):
            made = np.empty_like(wide)
            providers.native.softmax(made, wide, log)
            return _finish(made, a, half_to_float)
        if wide.size > FEW:
            return _finish(_by_rows(wide, _log_softmax_rows if log else _softmax_rows), a, half_to_float)
    elif FEW < wide.size <= MANY and providers.rows(wide):
        turned = _in_order(np.moveaxis(wide, axis, -1))
        made = np.empty_like(turned)
        providers.native.softmax(made, turned, log)
        return _finish(_in_order(np.moveaxis(made, -1, axis)), a, half_to_float)
    return _finish((_log_softmax_along if log else _softmax_along)(wide, axis), a, half_to_float)


def _in_order(view: Array) -> Array:
    """A row-major copy. C copies twice, and computes rows between, in less time than NumPy computes columns."""
    return copy_into(np.empty(view.shape, view.dtype), view)


def _softmax_along(a: Array, axis: int) -> Array:
    made = _exponentials(a, axis)
    return np.true_divide(made, add_reduce(made, axis, None, None, True), made)


def _log_softmax_along(a: Array, axis: int) -> Array:
    if a.size > FEW and is_moderate(a):
        made = np.exp(a)
        return np.subtract(a, np.log(add_reduce(made, axis, None, None, True)), made)
    made = a - maximum_reduce(a, axis, None, None, True)
    made -= np.log(add_reduce(np.exp(made), axis, None, None, True))
    return made


def _by_rows(a: Array, function: Callable[[Array, Array], None]) -> Array:
    """A function of rows, a few of them at a time, so that several passes find them in the cache."""
    made = np.empty_like(a)
    rows, results = a.reshape(-1, a.shape[-1]), made.reshape(-1, a.shape[-1])
    with SpreadInPlace(a.shape[-1]):
        for part in parts(*rows.shape):
            function(rows[part], results[part])
    return made


def _softmax_rows(rows: Array, made: Array) -> None:
    _exponentials(rows, 1, made)
    made *= 1 / row_sums(made)[:, None]


def _log_softmax_rows(rows: Array, made: Array) -> None:
    if is_moderate(rows):
        np.subtract(rows, np.log(row_sums(np.exp(rows, made)))[:, None], made)
        return
    np.subtract(rows, maximum_reduce(rows, 1, None, None, True), made)
    made -= np.log(row_sums(np.exp(made)))[:, None]


def _computes_columns(grad: Array, output: Array) -> bool:
    return FEW < grad.size <= MANY and grad.shape == output.shape and providers.rows(grad, output)


def _columns_back(grad: Array, output: Array, axis: int, log: bool) -> Array:
    """The gradient along a dimension that is not the last."""
    pull, result = (_in_order(np.moveaxis(one, axis, -1)) for one in (grad, output))
    made = np.empty_like(pull)
    providers.native.softmax_back(made, pull, result, log)
    return _in_order(np.moveaxis(made, -1, axis))


@providers.direct("softmax_back")
def softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Array:
    """output * (grad - sum(grad * output))."""
    pull, axis = _prepare(grad, dim, "softmax_backward")
    result, _ = _prepare(output, dim, "softmax_backward")
    if axis == pull.ndim - 1 and pull.shape == result.shape and providers.rows(pull, result):
        made = np.empty_like(pull)
        providers.native.softmax_back(made, pull, result, False)
    elif _computes_columns(pull, result):
        made = _columns_back(pull, result, axis, False)
    elif axis == pull.ndim - 1 and pull.size > FEW and pull.flags.c_contiguous and result.flags.c_contiguous:
        rows, shares = pull.reshape(-1, pull.shape[-1]), result.reshape(-1, pull.shape[-1])
        made = np.empty_like(rows)
        with SpreadInPlace(rows.shape[1]):
            for part in parts(*rows.shape):
                total = np.einsum("ij,ij->i", rows[part], shares[part])[:, None]
                block = np.subtract(rows[part], total, made[part])
                block *= shares[part]
    else:
        made = pull * result
        made -= result * _totals(made, axis)
    return made.reshape(grad.shape).astype(input_dtype.np, copy=False)


@providers.direct("log_softmax_back")
def log_softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Array:
    """grad - exp(output) * sum(grad)."""
    pull, axis = _prepare(grad, dim, "log_softmax_backward")
    result, _ = _prepare(output, dim, "log_softmax_backward")
    if axis == pull.ndim - 1 and pull.shape == result.shape and providers.rows(pull, result):
        made = np.empty_like(pull)
        providers.native.softmax_back(made, pull, result, True)
    elif _computes_columns(pull, result):
        made = _columns_back(pull, result, axis, True)
    elif axis == pull.ndim - 1 and pull.size > FEW and pull.flags.c_contiguous and result.flags.c_contiguous:
        rows, logs = pull.reshape(-1, pull.shape[-1]), result.reshape(-1, pull.shape[-1])
        made = np.empty_like(rows)
        with SpreadInPlace(rows.shape[1]):
            for part in parts(*rows.shape):
                block = np.exp(logs[part], made[part])
                block *= row_sums(rows[part])[:, None]
                np.subtract(rows[part], block, block)
    else:
        made = np.exp(result)
        made *= _totals(pull, axis)
        np.subtract(pull, made, made)
    return made.reshape(grad.shape).astype(input_dtype.np, copy=False)
