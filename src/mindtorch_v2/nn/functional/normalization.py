"""Normalisation over features, groups, batches or a dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from ._refusing import refuse_gradient


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance over the last dimensions, then scale and shift."""
    return aten.layer_norm(input, normalized_shape, weight, bias, eps, True)


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """Unit root mean square over the last dimensions, then scale."""
    return aten.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance per sample and group of channels, then scale and shift each channel."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    sizes = tuple(input._a.shape)
    _verify_batch_size((sizes[0] * sizes[1] // num_groups, num_groups, *sizes[2:]))
    return aten.group_norm(input, num_groups, weight, bias, eps, True)


def _verify_batch_size(size: Sequence[int]) -> None:
    """A single value per channel has no variance."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {_shown(size)}")


def _verify_spatial_size(size: Sequence[int]) -> None:
    """A single value per sample and channel has no variance."""
    if math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {_shown(size)}")


def _shown(sizes: Sequence[int]) -> str:
    return f"torch.Size({list(sizes)})"


def _refuse_no_momentum(name: str, momentum: float | None) -> None:
    """A layer without momentum averages, and passes a number; the functions know no average."""
    if momentum is None:
        raise TypeError(f"{name}(): argument 'momentum' (position 7) must be float, not NoneType")


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance per channel, from the batch (`training`) or from the running estimates."""
    if training:
        _verify_batch_size(tuple(input._a.shape))
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    _refuse_no_momentum("batch_norm", momentum)
    for name, statistic in (("running_mean", running_mean), ("running_var", running_var)):
        refuse_gradient("native_batch_norm", name, statistic)
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """`input` divided by its norm along `dim`."""
    length = aten.norm(input, p, dim, keepdim=True)
    if out is None:
        return aten.div(input, aten.expand_as(aten.clamp_min(length, eps), input))
    return aten.div(input, aten.expand_as(aten.clamp_min_(length, eps), input), out=out)


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance per sample and channel, then scale and shift."""
    if use_input_stats:
        _verify_spatial_size(input._a.shape)
        if eps <= 0.0:
            raise ValueError(f"instance_norm eps must be positive during training, but got {eps}")
    _refuse_no_momentum("instance_norm", momentum)
    for name, statistic in (("running_mean", running_mean), ("running_var", running_var)):
        refuse_gradient("native_batch_norm", name, statistic)
    return aten.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Each element divided by a power of the mean square of its neighbours in other channels."""
    ndim = input.ndim
    if ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {ndim} dimensions)")
    if input.numel() == 0:
        return input
    square = input * input
    margins = (0, 0, size // 2, (size - 1) // 2)
    if ndim == 3:
        mean = aten.squeeze(aten.avg_pool2d(aten.pad(aten.unsqueeze(square, 1), margins), (size, 1), 1), 1)
    else:
        sizes = tuple(input._a.shape)
        volume = aten.view(square, (sizes[0], 1, sizes[1], sizes[2], -1))
        pooled = aten.avg_pool3d(aten.pad(volume, (0, 0, *margins)), (size, 1, 1), 1)
        mean = aten.view(aten.squeeze(pooled, 1), sizes)
    return aten.div(input, aten.pow(aten.add(aten.mul(mean, alpha), k), beta))
