"""Kernels of layer, group and batch normalization. 16-bit floats are computed in float32.

All three bring the input to zero mean and unit variance over some of its elements and then scale and shift it. They
differ in how they group the elements into rows, and in what has parameters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dispatch.promotion import pretty
from ..._dtype import FROM_NUMPY, HALF_TYPES
from . import providers
from .blocks import SpreadInPlace, parts
from .memory import contiguous_step, empty, empty_like_contiguous, zero_
from .sums import channel_products, channel_sums, column_sums, row_sums
from .view import view_step

Array = Any


def wide(a: Array) -> Array:
    """16-bit floats as float32."""
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def _contiguous(a: Array) -> Array:
    """The array itself, or a copy in row-major order: rows must have no gaps."""
    return a if a.flags.c_contiguous else contiguous_step(a)


def _nothing(dtype: np.dtype) -> Array:
    return np.empty(0, dtype)


def _standardise(rows: Array, eps: float, scale: Array | None = None,
                 shift: Array | None = None) -> tuple[Array, Array, Array]:
    """Each row minus its mean, times `rstd`, then scaled and shifted; also means and `rstd` as columns."""
    count = rows.shape[1]
    made, mean, rstd = empty(rows.shape, rows.dtype), *(empty((rows.shape[0], 1), rows.dtype) for _ in range(2))
    np.true_divide(row_sums(rows)[:, None], rows.dtype.type(count), mean)  # NaN for empty rows
    with SpreadInPlace(count):
        for part in parts(*rows.shape):
            block = np.subtract(rows[part], mean[part], made[part])
            variance = np.einsum("ij,ij->i", block, block)[:, None] / rows.dtype.type(max(count, 1))
            block *= np.true_divide(1, np.sqrt(variance + rows.dtype.type(eps)), rstd[part])
            if scale is not None:
                block *= scale
            if shift is not None:
                block += shift
    return made, mean, rstd


# -- layer norm --------------------------------------------------------------------------------------------------------


def check_layer_norm(a: Array, shape: tuple[int, ...], weight: Array | None, bias: Array | None) -> None:
    """PyTorch's conditions."""
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                           "element, but got normalized_shape = []")
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != shape:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                               f"{list(parameter.shape)} and normalized_shape = {list(shape)}")
        if parameter is not None and parameter.dtype != a.dtype and parameter.dtype != np.float32:
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if parameter is not None and parameter.dtype != a.dtype and a.dtype not in HALF_TYPES:
            raise RuntimeError(f"expected scalar type {pretty(FROM_NUMPY[a.dtype])} but found "
                               f"{pretty(FROM_NUMPY[parameter.dtype])}")
    if a.ndim < len(shape) or a.shape[a.ndim - len(shape):] != shape:
        inside = "".join(f", {n}" for n in shape)
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*{inside}], but got "
                           f"input of size{list(a.shape)}")


@providers.direct("layer_norm")
def layer_norm(a: Array, normalized_shape: Any, weight: Array | None, bias: Array | None,
               eps: float) -> tuple[Array, Array, Array]:
    """Normalization over the last dimensions; also the means and reciprocal deviations."""
    shape = tuple(normalized_shape)
    check_layer_norm(a, shape, weight, bias)
    a = _contiguous(a)
    lead = a.shape[: a.ndim - len(shape)]
    flat = wide(a).reshape(math.prod(lead), math.prod(shape))
    scale = None if weight is None else wide(weight).reshape(-1)
    shift = None if bias is None else wide(bias).reshape(-1)
    if providers.rows(flat, *(p for p in (scale, shift) if p is not None)):
        rows, mean, rstd = empty(flat.shape, flat.dtype), *(empty((flat.shape[0], 1), flat.dtype) for _ in range(2))
        providers.native.layer_norm(rows, mean, rstd, flat, scale, shift, eps)
    else:
        rows, mean, rstd = _standardise(flat, eps, scale, shift)
    # PyTorch keeps the statistics in the parameters' type if that is wider than the input's.
    kept = weight.dtype if weight is not None else bias.dtype if bias is not None else a.dtype
    column = (*lead, *(1,) * len(shape))
    return (rows.reshape(a.shape).astype(a.dtype, copy=False), view_step(mean, column).astype(kept, copy=False),
            view_step(rstd, column).astype(kept, copy=False))


@providers.direct("layer_norm_back")
def layer_norm_backward(grad: Array, a: Array, normalized_shape: Any, mean: Array, rstd: Array, weight: Array | None,
                        bias: Array | None, output_mask: Any) -> tuple[Array, Array, Array]:
    """Gradients of input, weight and bias; those not requested are empty."""
    shape = tuple(normalized_shape)
    size = (math.prod(a.shape[: a.ndim - len(shape)]), math.prod(shape))
    grad, a = _contiguous(grad), _contiguous(a)
    pull, rows, deviation = wide(grad).reshape(size), wide(a).reshape(size), wide(rstd).reshape(-1)
    scale = None if weight is None else wide(weight).reshape(-1)
    means = wide(mean).reshape(-1, 1)
    if providers.rows(pull, rows, means, deviation, *(() if scale is None else (scale,))):
        made, second, third = (empty(of, rows.dtype) if wanted else None
                               for of, wanted in zip((rows.shape, shape, shape), output_mask))
        providers.native.layer_norm_back(made, second, third, pull, rows, means, deviation, scale)
        return _three(made, second, third, a, weight, bias)
    count = pull.dtype.type(max(size[1], 1))
    spread = deviation[:, None]
    made, second = empty(rows.shape, rows.dtype), zero_(empty((size[1],), pull.dtype))
    levels = (row_sums(pull) if scale is None else pull.dot(scale))[:, None] / count
    with SpreadInPlace(size[1]):
        for part in parts(*size):
            here = pull[part]
            centred = rows[part] - means[part]
            block = np.multiply(here, centred, made[part])
            second += deviation[part].dot(block)
            slopes = (row_sums(block) if scale is None else block.dot(scale))[:, None]
            # (weight * pull - its mean - centred * slope) * rstd, in the result's memory.
            centred *= slopes * spread[part] * spread[part] / count
            if scale is None:
                np.subtract(here, centred, block)
            else:
                np.multiply(here, scale, block)
                block -= centred
            block -= levels[part]
            block *= spread[part]
    third = column_sums(pull).reshape(shape) if output_mask[2] else None
    return _three(made, second.reshape(shape) if output_mask[1] else None, third, a, weight, bias)


def _three(made: Array | None, second: Array | None, third: Array | None, a: Array, weight: Array | None,
           bias: Array | None) -> tuple[Array, Array, Array]:
    """Gradients of input, weight and bias in their types; missing ones are empty."""
    return (_nothing(a.dtype) if made is None else made.reshape(a.shape).astype(a.dtype, copy=False),
            _nothing(a.dtype) if second is None else second.astype((a if weight is None else weight).dtype, copy=False),
            _nothing(a.dtype) if third is None else third.astype((a if bias is None else bias).dtype, copy=False))


# -- group norm --------------------------------------------------------------------------------------------------------


@providers.direct("group_norm")
def group_norm(a: Array, weight: Array | None, bias: Array | None, n: int, c: int, hxw: int, group: int,
               eps: float) -> tuple[Array, Array, Array]:
    """Normalization over groups of channels; also the means and reciprocal deviations."""
    _check_one_dtype(a, weight, bias)
    x = wide(a).reshape(n * c, hxw)
    if providers.rows(x, *(wide(p) for p in (weight, bias) if p is not None)):
        made, mean, rstd = empty(x.shape, x.dtype), empty((n, group), x.dtype), empty((n, group), x.dtype)
        providers.native.group_norm(made, x.reshape(n, c, hxw), mean, rstd, None if weight is None else wide(weight),
                                    None if bias is None else wide(bias), eps, group)
        kept = weight.dtype if weight is not None else a.dtype
        return (made.reshape(a.shape).astype(a.dtype, copy=False), mean.astype(kept, copy=False),
                rstd.astype(kept, copy=False))
    groups = x.reshape(n * group, c // group * hxw)
    real = x.dtype.type
    count = real(groups.shape[1])
    made, mean, rstd = empty(x.shape, x.dtype), *(empty((n * group, 1), x.dtype) for _ in range(2))
    np.true_divide(row_sums(groups)[:, None], count, mean)
    squares, centred = np.empty((n * group, 1), x.dtype), made.reshape(groups.shape)
    with SpreadInPlace(groups.shape[1]):
        for part in parts(*groups.shape):
            block = np.subtract(groups[part], mean[part], centred[part])
            squares[part] = np.einsum("ij,ij->i", block, block)[:, None]
    np.true_divide(1, np.sqrt(squares / max(count, real(1)) + real(eps)), rstd)
    # Deviation and parameters of a channel as one factor.
    factors = _of_channels(rstd, weight, n, c, group)
    with SpreadInPlace(hxw):
        for part in parts(*x.shape):
            block = made[part]
            block *= factors[part]
            if bias is not None:
                block += np.tile(wide(bias), n)[part, None]
    kept = weight.dtype if weight is not None else a.dtype
    return (made.reshape(a.shape).astype(a.dtype, copy=False), mean.reshape(n, group).astype(kept, copy=False),
            rstd.reshape(n, group).astype(kept, copy=False))


def _of_channels(groups: Array, weight: Array | None, n: int, c: int, group: int) -> Array:
    """A number of each group for all its channels, times the channel's weight, as a column of all channels."""
    made = np.repeat(groups.reshape(n, group), c // group, 1)
    return (made if weight is None else made * wide(weight)).reshape(-1, 1)


@providers.direct("group_norm_back")
def group_norm_backward(grad: Array, a: Array, mean: Array, rstd: Array, weight: Array | None, n: int, c: int,
                        hxw: int, group: int, output_mask: Any) -> tuple[Array, Array, Array]:
    """Gradients of input, weight and bias; those not requested are empty."""
    x, pull = wide(a).reshape(n * c, hxw), wide(grad).reshape(n * c, hxw)
    parameter = a.dtype if weight is None else weight.dtype
    if providers.rows(x, pull, wide(mean), wide(rstd), *(() if weight is None else (wide(weight),))):
        made = empty(x.shape, x.dtype)
        seconds, thirds = np.empty((2, n, c), x.dtype)
        providers.native.group_norm_back(made, seconds, thirds, pull, x.reshape(n, c, hxw), wide(mean), wide(rstd),
                                         None if weight is None else wide(weight), group)
        return (made.reshape(a.shape).astype(a.dtype, copy=False),
                (seconds.sum(0) if output_mask[1] else _nothing(x.dtype)).astype(parameter, copy=False),
                (thirds.sum(0) if output_mask[2] else _nothing(x.dtype)).astype(parameter, copy=False))
    means, spread = _of_channels(wide(mean), None, n, c, group), wide(rstd).reshape(n, group)
    made, products = empty(x.shape, x.dtype), np.empty(n * c, x.dtype)
    with SpreadInPlace(hxw):
        for part in parts(*x.shape):
            centred = np.subtract(x[part], means[part], made[part])
            products[part] = np.einsum("ij,ij->i", pull[part], centred)
    along, total = products.reshape(n, c), row_sums(pull).reshape(n, c)
    scales = np.ones(c, x.dtype) if weight is None else wide(weight)
    count = x.dtype.type(max(c // group * hxw, 1))
    # (weight * pull - its mean - centred * slope) * rstd, with the numbers of a group in each of its channels.
    slope = (along * scales).reshape(n, group, c // group).sum(2) * spread * spread * spread / -count
    level = (total * scales).reshape(n, group, c // group).sum(2) * spread / -count
    slopes, levels = _of_channels(slope, None, n, c, group), _of_channels(level, None, n, c, group)
    factors = _of_channels(spread, weight, n, c, group)
    with SpreadInPlace(hxw):
        for part in parts(*x.shape):
            block = made[part]
            block *= slopes[part]
            block += levels[part]
            block += pull[part] * factors[part]
    second = (along * np.repeat(spread, c // group, 1)).sum(0) if output_mask[1] else _nothing(x.dtype)
    third = total.sum(0) if output_mask[2] else _nothing(x.dtype)
    return (made.reshape(a.shape).astype(a.dtype, copy=False), second.astype(parameter, copy=False),
            third.astype(parameter, copy=False))


# -- batch norm --------------------------------------------------------------------------------------------------------


def _channels(a: Array) -> Array:
    """The input as (batch, channel, rest)."""
    return a.reshape(a.shape[0], a.shape[1], math.prod(a.shape[2:]))


def _centred(like: Array, x: Array, mean: Array) -> Array:
    """Each channel of `(batch, channels, rest)` minus its mean, in memory of the shape of `like`."""
    made = empty_like_contiguous(like, x.dtype)
    with SpreadInPlace(x.shape[2]):
        return np.subtract(x, mean[:, None], _channels(made))


def _update_running(running_mean: Array | None, running_var: Array | None, mean: Array, variance: Array, count: int,
                    momentum: float) -> None:
    """Move running statistics toward those of a batch, in place."""
    if running_mean is not None:
        running_mean[...] = wide(running_mean) * (1 - momentum) + mean * momentum
    if running_var is not None:
        unbiased = variance * np.true_divide(count, count - 1) if count > 1 else variance * np.inf
        running_var[...] = wide(running_var) * (1 - momentum) + unbiased * momentum


def _check_one_dtype(a: Array, *parameters: Array | None) -> None:
    """Check dtypes: parameters and statistics have the input's; those of 16-bit inputs may be float32."""
    for parameter in parameters:
        if parameter is None or parameter.dtype == a.dtype:
            continue
        if parameter.dtype == np.float32:
            if a.dtype in HALF_TYPES:
                continue
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


def dtype_kept(a: Array, *parameters: Array | None) -> np.dtype:
    """The dtype of the statistics that are kept for backward: 16 bits, unless a parameter or statistic has more."""
    return max((p.dtype for p in parameters if p is not None), key=lambda dtype: dtype.itemsize, default=a.dtype)


@providers.direct("batch_norm")
def batch_norm(a: Array, weight: Array | None, bias: Array | None, running_mean: Array | None,
               running_var: Array | None, training: bool, momentum: float, eps: float) -> tuple[Array, Array, Array]:
    """Normalization of each channel; training updates the running statistics in place."""
    _check_one_dtype(a, weight, bias, running_mean, running_var)
    x = _channels(wide(a))
    parameters = [None if p is None else wide(p) for p in (weight, bias)]
    kept = dtype_kept(a, weight, bias, running_mean, running_var)
    if training and providers.rows(x, *(p for p in parameters if p is not None)):
        made = empty_like_contiguous(a, x.dtype)
        mean, variance, invstd = (np.empty(x.shape[1], x.dtype) for _ in range(3))  # each is a separate tensor
        providers.native.batch_norm(made, x, mean, variance, invstd, *parameters, eps, True)
        _update_running(running_mean, running_var, mean, variance, x.shape[0] * x.shape[2], momentum)
        return (made.reshape(a.shape).astype(a.dtype, copy=False), mean.astype(kept, copy=False),
                invstd.astype(kept, copy=False))
    if training:
        count = x.shape[0] * x.shape[2]
        mean = channel_sums(x) / x.dtype.type(count) if count else np.full(x.shape[1], np.nan, x.dtype)
        made = _centred(a, x, mean)
        variance = channel_products(made, made) / x.dtype.type(max(count, 1))
        scale = invstd = 1 / np.sqrt(variance + x.dtype.type(eps))
        _update_running(running_mean, running_var, mean, variance, count, momentum)
    else:
        if running_mean is None or running_var is None:
            which = "running_mean" if running_mean is None else "running_var"
            raise RuntimeError(f"{which} must be defined in evaluation mode")
        given = [wide(running_mean), wide(running_var)]
        if providers.rows(x, *given, *(p for p in parameters if p is not None)):
            made = empty_like_contiguous(a, x.dtype)
            providers.native.batch_norm(made, x, *given, np.empty(x.shape[1], x.dtype), *parameters, eps, False)
            return made.reshape(a.shape).astype(a.dtype, copy=False), _nothing(kept), _nothing(kept)
        scale = 1 / np.sqrt(wide(running_var) + x.dtype.type(eps))
        made = _centred(a, x, wide(running_mean))
        mean = invstd = _nothing(kept)
    scale = (scale if weight is None else scale * wide(weight))[:, None]
    with SpreadInPlace(x.shape[2]):
        for part in parts(x.shape[0], x.shape[1] * x.shape[2]):
            block = made[part]
            block *= scale
            if bias is not None:
                block += wide(bias)[:, None]
    return (made.reshape(a.shape).astype(a.dtype, copy=False), mean.astype(kept, copy=False),
            invstd.astype(kept, copy=False))


@providers.direct("batch_norm_back")
def batch_norm_backward(grad: Array, a: Array, weight: Array | None, running_mean: Array | None,
                        running_var: Array | None, save_mean: Array, save_invstd: Array, train: bool, eps: float,
                        output_mask: Any) -> tuple[Array, Array, Array]:
    """Gradients of input, weight and bias; those not requested are empty."""
    x, pull = _channels(wide(a)), _channels(wide(grad))
    if train:
        mean, invstd = wide(save_mean), wide(save_invstd)
    else:
        mean, invstd = wide(running_mean), 1 / np.sqrt(wide(running_var) + x.dtype.type(eps))
    parameter = a.dtype if weight is None else weight.dtype
    factor = None if weight is None else wide(weight)
    if providers.rows(x, pull, mean, invstd, *(() if factor is None else (factor,))):
        made = empty_like_contiguous(a, x.dtype)
        second, third = (np.empty(x.shape[1], x.dtype) for _ in range(2))
        providers.native.batch_norm_back(made, second, third, pull, x, mean, invstd, factor, train)
        return (made.reshape(a.shape).astype(a.dtype, copy=False),
                (second if output_mask[1] else _nothing(x.dtype)).astype(parameter, copy=False),
                (third if output_mask[2] else _nothing(x.dtype)).astype(parameter, copy=False))
    scale = (invstd if factor is None else invstd * factor)[:, None]
    made = _centred(a, x, mean)
    along = channel_products(pull, made) * invstd
    total = channel_sums(pull)
    if train:
        count = x.dtype.type(max(x.shape[0] * x.shape[2], 1))
        slope, level = (along * invstd / -count)[:, None], (total / count)[:, None]
        with SpreadInPlace(x.shape[2]):
            for part in parts(x.shape[0], x.shape[1] * x.shape[2]):
                block = made[part]
                block *= slope
                block += pull[part]
                block -= level
                block *= scale
    else:
        np.multiply(pull, scale, made)
    return (made.reshape(a.shape).astype(a.dtype, copy=False),
            (along if output_mask[1] else _nothing(x.dtype)).astype(parameter, copy=False),
            (total if output_mask[2] else _nothing(x.dtype)).astype(parameter, copy=False))
