"""Softmax and log-softmax along one dimension. 16-bit floats are computed in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES, pretty
from ..._dtype import FROM_NUMPY, HALF_TYPES
from ..._shape import wrap_dim

Array = Any


def _prepare(a: Array, dim: int, kernel: str) -> tuple[Array, int]:
    """The operand in the type it is computed in, 0-d ones as vectors, and the axis."""
    if a.dtype not in FLOAT_DTYPES:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{pretty(FROM_NUMPY[a.dtype])}'")
    axis = wrap_dim(dim, a.ndim)
    wide = a.astype(np.float32) if a.dtype in HALF_TYPES else a
    return (wide if a.ndim else wide.reshape(1)), axis


def _finish(made: Array, like: Array, half_to_float: bool) -> Array:
    made = made.reshape(like.shape)
    return made if half_to_float else made.astype(like.dtype, copy=False)


def softmax(a: Array, dim: int, half_to_float: bool) -> Array:
    """exp(a) / sum(exp(a)), with the maximum subtracted first."""
    wide, axis = _prepare(a, dim, "softmax_lastdim_kernel_impl")
    if not a.size:
        return _finish(wide.copy(), a, half_to_float)
    made = wide - wide.max(axis, keepdims=True)
    np.exp(made, made)
    made /= made.sum(axis, keepdims=True)
    return _finish(made, a, half_to_float)


def log_softmax(a: Array, dim: int, half_to_float: bool) -> Array:
    """a - log(sum(exp(a))), with the maximum subtracted first."""
    wide, axis = _prepare(a, dim, "log_softmax_lastdim_kernel_impl")
    if not a.size:
        return _finish(wide.copy(), a, half_to_float)
    made = wide - wide.max(axis, keepdims=True)
    total = np.exp(made).sum(axis, keepdims=True)
    made -= np.log(total, total)
    return _finish(made, a, half_to_float)


def softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Array:
    """output * (grad - sum(grad * output))."""
    pull, axis = _prepare(grad, dim, "softmax_backward")
    result, _ = _prepare(output, dim, "softmax_backward")
    made = pull * result
    total = made.sum(axis, keepdims=True)
    made -= result * total
    return made.reshape(grad.shape).astype(input_dtype.np, copy=False)


def log_softmax_backward(grad: Array, output: Array, dim: int, input_dtype: Any) -> Array:
    """grad - exp(output) * sum(grad)."""
    pull, axis = _prepare(grad, dim, "log_softmax_backward")
    result, _ = _prepare(output, dim, "log_softmax_backward")
    made = np.exp(result)
    made *= pull.sum(axis, keepdims=True)
    np.subtract(pull, made, made)
    return made.reshape(grad.shape).astype(input_dtype.np, copy=False)
