"""Normalisation of layers, groups and batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import FLOAT32, NpuArray, contiguous, converted, like, new, viewed
from ..call import CALLS
from .expressions import difference, product, quotient
from .registry import COMPOSED, composed
from .sums import mean, total
from .views import zeros


def ones(beside: NpuArray, shape: tuple[int, ...], dtype: np.dtype | None = None) -> NpuArray:
    out = new(beside, shape, dtype)
    CALLS.InplaceOne(out)
    return out


def _wide(array: NpuArray) -> np.dtype:
    """The type of means and deviations."""
    return array.dtype if array.dtype.itemsize == 8 else FLOAT32


@composed("native_layer_norm")
def layer_norm(input: NpuArray, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[NpuArray, NpuArray, NpuArray]:
    """Layer normalisation, with the mean and the inverse deviation."""
    shape = tuple(shape)
    if input.shape[input.ndim - len(shape):] != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape "
                           f"[*{''.join(f', {n}' for n in shape)}], but got input of size{list(input.shape)}")
    outer = (*input.shape[:input.ndim - len(shape)], *[1] * len(shape))
    out, mean_, rstd = new(input, input.shape), new(input, outer, _wide(input)), new(input, outer, _wide(input))
    if out.size:
        CALLS.LayerNorm(contiguous(input), shape, weight, bias, eps, out, mean_, rstd)
    return out, mean_, rstd


@composed("native_layer_norm_backward")
def layer_norm_backward(grad: NpuArray, input: NpuArray, shape: Any, mean_: NpuArray, rstd: NpuArray, weight: Any,
                        bias: Any, mask: Any) -> tuple[Any, Any, Any]:
    """Gradients of layer normalisation."""
    shape = tuple(shape)
    given = weight
    weight = ones(input, shape) if weight is None else weight
    grads = new(input, input.shape), new(input, shape, weight.dtype), new(input, shape, weight.dtype)
    CALLS.LayerNormBackward(contiguous(grad), contiguous(input), shape, mean_, rstd, weight, bias,
                            (True, True, True), *grads)
    wanted = (mask[0], mask[1] and given is not None, mask[2] and bias is not None)
    return tuple([made if wants else new(input, (0,))
                  for made, wants in zip(grads, wanted, strict=True)])  # type: ignore[return-value]


@composed("native_group_norm")
def group_norm(input: NpuArray, weight: Any, bias: Any, n: int, c: int, hxw: int, group: int,
               eps: float) -> tuple[NpuArray, NpuArray, NpuArray]:
    """Group normalisation."""
    out, mean_, rstd = new(input, input.shape), new(input, (n, group)), new(input, (n, group))
    weight = ones(input, (c,)) if weight is None else weight
    bias = zeros(input, (c,)) if bias is None else bias
    CALLS.GroupNorm(contiguous(input), weight, bias, n, c, hxw, group, eps, out, mean_, rstd)
    return out, mean_, rstd


@composed("native_group_norm_backward")
def group_norm_backward(grad: NpuArray, input: NpuArray, mean_: NpuArray, rstd: NpuArray, weight: Any, n: int, c: int,
                        hxw: int, group: int, mask: Any) -> tuple[Any, Any, Any]:
    """Gradients of group normalisation, from sums over what a group normalises."""
    inner = c // group
    wide = (n, group, inner, hxw)
    grad, input = (viewed(contiguous(a), wide) for a in (grad, input))
    mean_, rstd = (viewed(contiguous(converted(a, input.dtype)), (n, group, 1, 1)) for a in (mean_, rstd))
    centred, normal = new(input, wide), new(input, wide)
    CALLS.Sub(input, mean_, 1, centred)
    CALLS.Mul(centred, rstd, normal)
    made: list[Any] = [None, None, None]
    if mask[0]:
        scaled = grad
        if weight is not None:
            scaled = new(grad, wide)
            CALLS.Mul(grad, viewed(contiguous(weight), (1, group, inner, 1)), scaled)
        product = new(grad, wide)
        CALLS.Mul(scaled, normal, product)
        along = mean(product, (2, 3), True, None)
        flat = mean(scaled, (2, 3), True, None)
        result = new(grad, wide)
        CALLS.Addcmul(scaled, normal, along, -1, result)
        CALLS.InplaceSub(result, flat, 1)
        CALLS.InplaceMul(result, rstd)
        made[0] = result
    if mask[1]:
        product = new(grad, wide)
        CALLS.Mul(grad, normal, product)
        made[1] = viewed(total(product, (0, 3), False, None), (c,))
    if mask[2]:
        made[2] = viewed(total(grad, (0, 3), False, None), (c,))
    return made[0], made[1], made[2]


COMPOSED["native_group_norm_backward"] = lambda grad, input, *rest: _shaped_first(
    group_norm_backward(grad, input, *rest), input.shape)


def _shaped_first(made: tuple[Any, Any, Any], shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    return (None if made[0] is None else viewed(made[0], shape), made[1], made[2])


@composed("native_batch_norm")
def batch_norm(input: NpuArray, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
               momentum: float, eps: float) -> tuple[NpuArray, NpuArray, NpuArray]:
    """Batch normalisation; running averages are changed in place."""
    channels = (input.shape[1],)
    weight = ones(input, channels) if weight is None else weight
    bias = zeros(input, channels) if bias is None else bias
    running_mean = zeros(input, channels) if running_mean is None else running_mean
    running_var = ones(input, channels) if running_var is None else running_var
    out = new(input, input.shape)
    saved = (channels if training else (0,))
    mean_, invstd = new(input, channels, _wide(input)), new(input, channels, _wide(input))
    CALLS.BatchNorm(contiguous(input), weight, bias, running_mean, running_var, training, momentum, eps, out, mean_,
                    invstd)
    if saved == (0,):
        return out, new(input, (0,)), new(input, (0,))
    return out, mean_, invstd


@composed("native_batch_norm_backward")
def batch_norm_backward(grad: NpuArray, input: NpuArray, weight: Any, running_mean: Any, running_var: Any,
                        save_mean: Any, save_invstd: Any, train: bool, eps: float,
                        mask: Any) -> tuple[Any, Any, Any]:
    """Gradients of batch normalisation."""
    channels = (input.shape[1],)
    given = weight
    weight = ones(input, channels) if weight is None else weight
    running_mean = zeros(input, channels) if running_mean is None else running_mean
    running_var = ones(input, channels) if running_var is None else running_var
    if save_mean is None or not save_mean.size:
        save_mean = zeros(input, channels, )
        save_invstd = ones(input, channels)
    grads = new(input, input.shape), new(input, channels, weight.dtype), new(input, channels, weight.dtype)
    CALLS.BatchNormBackward(contiguous(grad), contiguous(input), weight, running_mean, running_var, save_mean,
                            save_invstd, train, eps, (True, True, True), *grads)
    wanted = (mask[0], mask[1] and given is not None, mask[2])
    return tuple([made if wants else new(input, (0,))
                  for made, wants in zip(grads, wanted, strict=True)])  # type: ignore[return-value]


def _others(array: NpuArray, dim: int) -> tuple[int, ...]:
    return tuple([d for d in range(array.ndim) if d != dim % array.ndim])


@composed("_weight_norm_interface")
def weight_norm(v: NpuArray, g: NpuArray, dim: int) -> tuple[NpuArray, NpuArray]:
    """A direction of a given length, and the length that it had."""
    wide = converted(v, FLOAT32) if v.dtype.itemsize == 2 else v
    squares = total(product(wide, wide), _others(v, dim), True, None)
    norms = like(squares)
    CALLS.Sqrt(squares, norms)
    return converted(product(wide, quotient(converted(g, wide.dtype), norms)), v.dtype), norms


@composed("_weight_norm_interface_backward")
def weight_norm_backward(grad: NpuArray, v: NpuArray, g: NpuArray, norms: NpuArray,
                         dim: int) -> tuple[NpuArray, NpuArray]:
    """The gradients of direction and length."""
    wide_v, wide_grad, wide_g = (converted(one, norms.dtype) for one in (v, grad, g))
    along = quotient(total(product(wide_grad, wide_v), _others(v, dim), True, None), norms)
    across = difference(wide_grad, product(wide_v, quotient(along, norms)))
    return (converted(product(quotient(wide_g, norms), across), v.dtype), converted(along, g.dtype))
