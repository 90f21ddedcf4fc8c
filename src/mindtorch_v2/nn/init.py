"""Filling tensors with their first values; with the same seed they are PyTorch's.

`orthogonal_` goes through LAPACK's QR factorisation, so it agrees with PyTorch to rounding only.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._autograd.grad_mode import no_grad
from .._backends.base import to_host
from .._construct import tensor as make_tensor
from .._device import CPU
from .._dispatch.namespace import aten, public
from .._random import Generator
from .._tensor import Tensor, wrap

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor by which a layer's weights are scaled for the nonlinearity that follows it."""
    if nonlinearity in LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        if isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    gains = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform over `[a, b)`."""
    return _no_grad_uniform_(tensor, a, b, generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with the given mean and standard deviation."""
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:
    """Normal, with values outside `[a, b]` drawn again."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
                      "The distribution of values may be incorrect.", stacklevel=2)
    if tensor.is_meta:
        return tensor

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    with no_grad():
        # The order of draws decides the values, so both ways draw in PyTorch's order.
        if below(b) - below(a) > 0.3:
            return _draw_normals_until_inside(tensor, mean, std, a, b, generator)
        return _draw_uniforms_until_accepted(tensor, mean, std, a, b, generator)


def _draw_normals_until_inside(tensor: Tensor, mean: float, std: float, a: float, b: float,
                               generator: Generator | None) -> Tensor:
    """Most of the bell lies in the interval: draw all, then replace those outside."""
    low, high = (aten.item(make_tensor(bound, dtype=tensor.dtype)) for bound in (a, b))
    drawn, fresh = tensor.normal_(mean, std, generator=generator), None
    while True:
        outside = (drawn < low) | (drawn > high)
        if not bool(aten.any(outside)):
            return tensor if fresh is None else aten.copy_(tensor, drawn)
        fresh = aten.empty_like(tensor) if fresh is None else fresh
        drawn = aten.where(outside, fresh.normal_(mean, std, generator=generator), drawn)


def _draw_uniforms_until_accepted(tensor: Tensor, mean: float, std: float, a: float, b: float,
                                  generator: Generator | None) -> Tensor:
    """A small part of the bell: draw uniformly from the interval and accept in proportion to the density."""
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    pending, accepted = None, tensor
    candidates, height = aten.empty_like(tensor), aten.empty_like(tensor)
    while True:
        candidates.uniform_(a, b, generator=generator)
        if pending is None:
            aten.copy_(accepted, candidates)
        else:
            accepted = aten.where(pending, candidates, accepted)
        aten.pow_(aten.div_(aten.sub_(candidates, mean), std), 2)
        log_density = aten.sub_(aten.mul_(candidates, -0.5), log_peak)
        refused = aten.gt(aten.log_(height.uniform_(generator=generator)), log_density)
        pending = refused if pending is None else aten.where(pending, refused, pending)
        if not bool(aten.any(pending)):
            return tensor if accepted is tensor else aten.copy_(tensor, accepted)


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Generator | None = None) -> Tensor:
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Generator | None = None) -> Tensor:
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(tensor: Tensor, mean: float, std: float, a: float, b: float,
                           generator: Generator | None = None) -> Tensor:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    with no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(public.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution weight that passes its input through: one in the middle of each matching channel pair."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tuple(tensor.shape)
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    kept = min(per_group, sizes[1])
    content = np.zeros(sizes, tensor._a.dtype)
    channel = np.tile(np.arange(kept), groups)
    row = np.repeat(np.arange(groups) * per_group, kept) + channel
    middle: tuple[Any, ...] = tuple(size // 2 for size in sizes[2:])
    content[(row, channel, *middle)] = 1
    with no_grad():
        return aten.copy_(tensor, wrap(content))


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    sizes = tuple(tensor.shape)
    field = math.prod(sizes[2:])
    return sizes[1] * field, sizes[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Glorot's uniform initialisation."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Glorot's normal initialisation."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return _no_grad_normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:
    """He's uniform initialisation."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:
    """He's normal initialisation."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else _no_grad_normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Orthonormal rows or columns, uniform over all such matrices."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor._a.size or tensor.is_meta:
        return tensor
    rows, columns = tensor._a.shape[0], tensor._a.size // tensor._a.shape[0]
    with no_grad():
        drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        q, r = aten.linalg_qr(aten.t_(drawn) if rows < columns else drawn)
        # QR leaves signs open; a positive diagonal of r makes the distribution uniform.
        aten.mul_(q, aten.sign(aten.diag(r)))
        if rows < columns:
            aten.t_(q)
        aten.copy_(tensor.view_as(q), q)
        return aten.mul_(tensor, gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal, with the given share of each column set to zero."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, columns = tensor._a.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        # One permutation per column, because that is how PyTorch consumes its random numbers.
        chosen = [to_host(public.randperm(rows, device=CPU)._a)[:zeros] for _ in range(columns)]
        mask = np.zeros((rows, columns), bool)
        if chosen:
            mask[np.stack(chosen, 1), np.arange(columns)] = True
        return aten.masked_fill_(tensor, aten.to(wrap(mask), tensor.device), 0)


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    new_name = function.__name__
    old_name = new_name[:-1]

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.", FutureWarning,
                      stacklevel=2)
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = old_name
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
