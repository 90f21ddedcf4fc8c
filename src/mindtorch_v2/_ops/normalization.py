"""Layer, group, batch, instance and root-mean-square normalization.

While a backward is itself being recorded (`create_graph=True`), the fused backward kernels make way for the same
gradients written as ops, which can be differentiated any number of times.
"""

from __future__ import annotations

import math
from typing import Any

from .._backends.cpu import normalization as kernels
from .._backends.meta import MetaArray
from .._dispatch.dtype_rules import unsupported
from .._dispatch.layouts import is_channels_last
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dispatch.state import THREAD
from .._dtype import FLOAT, FROM_NUMPY, HALF_TYPES, finfo, float32, uint8
from .._tensor import Tensor

Gradients = tuple[Any, Any, Any]


def _asked(made: tuple[Tensor | None, ...], needs: tuple[bool, ...]) -> Gradients:
    """The gradients that were asked for."""
    return tuple(m if n else None for m, n in zip(made, needs, strict=True))  # type: ignore[return-value]


def _recordable_gradient(pull: Any, x: Any, dims: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """Gradient of standardising `x` over `dims`, and the standardised `x`, in ops."""
    mean = aten.mean(x, dims, True)
    centred = x - mean
    rstd = aten.rsqrt(aten.mean(centred * centred, dims, True) + eps)
    normal = centred * rstd
    made = rstd * (pull - aten.mean(pull, dims, True) - normal * aten.mean(pull * normal, dims, True))
    return made, normal


# -- layer norm --------------------------------------------------------------------------------------------------------


def _layer_norm_gradients(grad: Tensor, input: Any, normalized_size: Any, weight: Any, bias: Any, eps: float,
                          result1: Any, result2: Any, needs: Any) -> Gradients:
    if not THREAD.state.grad:
        made = aten.native_layer_norm_backward(grad, input, normalized_size, result1, result2, weight, bias, needs)
        return _asked(made, needs)
    dims = tuple(range(-len(tuple(normalized_size)), 0))
    lead = tuple(range(input.ndim - len(dims)))
    first, normal = _recordable_gradient(grad if weight is None else grad * weight, input, dims, eps)
    second = grad * normal
    return _asked((first, aten.sum(second, lead) if lead else second, aten.sum(grad, lead) if lead else grad), needs)


# PyTorch calls the second argument normalized_shape, but in formulas `<tensor>_shape` means the shape of a tensor.
declare(
    "native_layer_norm(Tensor input, int[] normalized_size, Tensor? weight, Tensor? bias, float eps) -> "
    "(Tensor, Tensor, Tensor)", cpu=kernels.layer_norm, where="f", differentiable=(0,),
    grad={("input", "weight", "bias"): _layer_norm_gradients},
)
declare(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
    "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", cpu=kernels.layer_norm_backward,
    where="n",
)
def _check_shape(name: str, normalized_shape: Any) -> None:
    if isinstance(normalized_shape, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")


def _layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float,
                cudnn_enable: bool) -> Tensor:
    _check_shape("layer_norm", normalized_shape)
    return aten.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


declare(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor", where="f", composite=_layer_norm,
)


def _fused_rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, eps: float | None) -> tuple[Any, Any]:
    own = FROM_NUMPY[input._a.dtype]
    if own.category < FLOAT:
        raise unsupported("rms_norm", input._a.dtype)
    computed = float32 if input._a.dtype in HALF_TYPES else own
    epsilon = finfo(computed).eps if eps is None else eps
    wide = aten.to(input, computed)
    dims = tuple(range(-len(tuple(normalized_shape)), 0))
    rstd = aten.rsqrt(aten.add___Scalar(aten.mean(aten.pow(wide, 2), dims, True), epsilon))
    made = aten.mul(wide, rstd)
    if weight is not None:
        made = aten.mul(made, weight)
    return aten.type_as(made, input), rstd


declare("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
        composite=_fused_rms_norm, where="f")


def _rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, eps: float | None) -> Tensor:
    _check_shape("rms_norm", normalized_shape)
    if input._a.ndim < len(normalized_shape):
        raise ValueError(f"Input tensor must have at least {len(normalized_shape)} dimensions, but got {input._a.ndim}")
    kernels.check_layer_norm(input._a, tuple(normalized_shape), None, None)
    if weight is not None and weight._a.shape != tuple(normalized_shape):
        raise RuntimeError(f"Expected weight to be of same shape as normalized_shape, but got weight of shape "
                           f"{list(weight._a.shape)} and normalized_shape = {list(normalized_shape)}")
    return aten._fused_rms_norm(input, normalized_shape, weight, eps)[0]


declare("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
        composite=_rms_norm, where="f")

# -- group norm --------------------------------------------------------------------------------------------------------


def _group_norm_gradients(given_grads: Any, input: Any, weight: Any, n: int, c: int, hxw: int, group: int, eps: float,
                          result1: Any, result2: Any, needs: Any) -> Gradients:
    grad, of_mean, of_rstd = given_grads
    if not THREAD.state.grad and of_mean is of_rstd is None:
        made = aten.native_group_norm_backward(aten.contiguous(grad), input, result1, result2, weight, n, c, hxw,
                                               group, needs)
        return _asked(made, needs)
    count = c // group * hxw
    rows, cells = (n, group, count), (n, c, hxw)
    x = aten.reshape(input, rows)
    first = second = third = None
    if grad is not None:
        pull = aten.reshape(grad, cells)
        scaled = pull if weight is None else pull * aten.view(weight, (c, 1))
        first, normal = _recordable_gradient(aten.reshape(scaled, rows), x, (2,), eps)
        second, third = aten.sum(pull * aten.reshape(normal, cells), (0, 2)), aten.sum(pull, (0, 2))
    # The statistics are seldom used: their gradients come on top.
    mean = aten.mean(x, (2,), True)
    if of_mean is not None:
        part = aten.expand(aten.reshape(of_mean, (n, group, 1)), rows) / count
        first = part if first is None else first + part
    if of_rstd is not None:
        rstd = aten.rsqrt(aten.mean((x - mean) * (x - mean), (2,), True) + eps)
        part = aten.reshape(of_rstd, (n, group, 1)) * aten.pow(rstd, 3) * (x - mean) / -count
        first = part if first is None else first + part
    return _asked((aten.reshape(first, input._a.shape), second, third), needs)


declare(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int n, int c, int hxw, int group, float eps) -> "
    "(Tensor, Tensor, Tensor)", cpu=kernels.group_norm, where="f",
    grad={("input", "weight", "bias"): _group_norm_gradients},
)
declare(
    "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int n, int c, "
    "int hxw, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", cpu=kernels.group_norm_backward, where="n",
)


def _group_norm(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float,
                cudnn_enabled: bool) -> Tensor:
    shape = input._a.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{list(shape)} and num_groups={num_groups}")
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter._a.shape != (shape[1],):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but "
                               f"got {name} of shape {list(parameter._a.shape)} and input of shape {list(shape)}")
    laid_out = input if is_channels_last(input._a) else aten.contiguous(input)
    return aten.native_group_norm(laid_out, weight, bias, shape[0], shape[1], math.prod(shape[2:]),
                                  num_groups, eps)[0]


declare("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
        "bool cudnn_enabled=True) -> Tensor", composite=_group_norm, where="f")

# -- batch norm --------------------------------------------------------------------------------------------------------


def _batch_norm_gradients(grad: Tensor, input: Any, weight: Any, running_mean: Any, running_var: Any,
                          training: bool, eps: float, result1: Any, result2: Any, needs: Any) -> Gradients:
    if not THREAD.state.grad:
        made = aten.native_batch_norm_backward(grad, input, weight, running_mean, running_var, result1, result2,
                                               training, eps, needs)
        return _asked(made, needs)
    dims = (0, *range(2, input.ndim))
    column = (-1, *(1,) * (input.ndim - 2))
    scaled = grad if weight is None else grad * aten.view(weight, column)
    if training:
        first, normal = _recordable_gradient(scaled, input, dims, eps)
    else:
        rstd = aten.view(aten.rsqrt(running_var + eps), column)
        first, normal = scaled * rstd, (input - aten.view(running_mean, column)) * rstd
    return _asked((first, aten.sum(grad * normal, dims), aten.sum(grad, dims)), needs)


def _batch_norm_shapes(a: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                       momentum: float, eps: float) -> tuple[Any, Any, Any]:
    kind = kernels.dtype_kept(a, weight, bias, running_mean, running_var)
    count = a.shape[1] if training else 0
    return MetaArray.empty(a.shape, a.dtype), MetaArray.empty((count,), kind), MetaArray.empty((count,), kind)


declare(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", cpu=kernels.batch_norm, where="f",
    differentiable=(0,), grad={("input", "weight", "bias"): _batch_norm_gradients}, meta=_batch_norm_shapes,
)
declare(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
    "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", where="n",
    composite=lambda input, weight, bias, running_mean, running_var, training, momentum, eps: aten.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps),
)
declare(
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
    "float eps) -> (Tensor, Tensor, Tensor)", where="n",
    composite=lambda input, weight, bias, training, momentum, eps: aten.native_batch_norm(
        input, weight, bias, None, None, training, momentum, eps),
)


@choose("_native_batch_norm_legit", where="f")
def _native_batch_norm_legit(input: Tensor, weight: Any, bias: Any, *rest: Any, **named: Any) -> tuple[Tensor, ...]:
    stats = "running_mean" in named or (bool(rest) and isinstance(rest[0], Tensor))
    op = aten._native_batch_norm_legit__default if stats else aten._native_batch_norm_legit__no_stats
    made: tuple[Tensor, ...] = op(input, weight, bias, *rest, **named)
    return made


declare(
    "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
    "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> "
    "(Tensor, Tensor, Tensor)", cpu=kernels.batch_norm_backward, where="n",
)


def _check_channels(name: str, parameter: Tensor | None, channels: int) -> None:
    if parameter is not None and parameter._a.size != channels:
        raise RuntimeError(f"{name} should contain {channels} elements not {parameter._a.size}")


def _batch_norm_impl(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                     momentum: float, eps: float, cudnn_enabled: bool) -> tuple[Any, ...]:
    shape = input._a.shape
    reserve = aten.empty((0,), dtype=uint8, device=input.device)
    if 0 in shape:
        # Nothing to learn from, and nothing is checked; the parameters get gradients of zero.
        made = aten.clone(input)
        for factor, combine in ((weight, aten.mul), (bias, aten.add)):
            made = made if factor is None or not factor._a.size else combine(made, aten.select(factor, 0, 0))
        nothing = aten.empty((0,), dtype=input.dtype, device=input.device)
        return (made, nothing, nothing, reserve, 0)
    channels = shape[1] if len(shape) > 1 else 0
    if not training and (running_mean is None or running_var is None):
        which = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{which} must be defined in evaluation mode")
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    for name, parameter in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight),
                            ("bias", bias)):
        _check_channels(name, parameter, channels)
    if len(shape) < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-len(shape) or -1}, "
                         f"{max(len(shape) - 1, 0)}], but got 1)")
    made = aten.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return (*made, reserve, 0)


declare("_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)",
        composite=_batch_norm_impl, where="f")
declare("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor", where="f",
        composite=lambda *arguments: aten._batch_norm_impl_index(*arguments)[0])


def _instance_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool,
                   momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    """Batch normalization with every sample's channels taken as channels of one sample."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    batch, channels, *rest = input._a.shape

    def repeated(parameter: Tensor | None) -> Tensor | None:
        return None if parameter is None else aten.repeat(parameter, batch)

    scale, shift = repeated(weight), repeated(bias)
    mean, variance = repeated(running_mean), repeated(running_var)
    flat = aten.view(aten.contiguous(input), (1, batch * channels, *rest))
    made = aten.batch_norm(flat, scale, shift, mean, variance, use_input_stats, momentum, eps, cudnn_enabled)
    for running, seen in ((running_mean, mean), (running_var, variance)):
        if running is not None and use_input_stats:
            aten.copy_(aten.detach(running), aten.mean(aten.view(seen, (batch, channels)), (0,), False))
    return aten.view(made, input._a.shape)


declare("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor", composite=_instance_norm,
        where="f")
