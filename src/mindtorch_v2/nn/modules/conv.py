"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._device import DeviceLike
from ..._dtype import DType
from ..._tensor import Tensor
from .. import functional as F
from .. import init
from ._affine import parameter
from ._homes import elsewhere
from .module import Module

Sizes = int | Sequence[int]
PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


def each(value: Sizes, count: int) -> tuple[int, ...]:
    """One number per dimension."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * count


class _ConvNd(Module):
    """What all convolution layers share."""

    spatial = 0
    transposed = False
    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes, padding: Sizes | str,
                 dilation: Sizes, output_padding: Sizes, groups: int, bias: bool, padding_mode: str, device: DeviceLike,
                 dtype: DType | None) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = each(kernel_size, self.spatial)
        self.stride = each(stride, self.spatial)
        self.padding: tuple[int, ...] | str = padding if isinstance(padding, str) else each(padding, self.spatial)
        self.dilation = each(dilation, self.spatial)
        self.output_padding = each(output_padding, self.spatial)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check_padding()
        self._reversed_padding_repeated_twice = self._margins()
        inside, outside = (out_channels, in_channels) if self.transposed else (in_channels, out_channels)
        self.weight = parameter((outside, inside // groups, *self.kernel_size), device, dtype)
        self.register_parameter("bias", parameter((out_channels,), device, dtype) if bias else None)
        self.reset_parameters()

    def _check_padding(self) -> None:
        if isinstance(self.padding, str):
            if self.padding not in ("valid", "same"):
                raise ValueError(f"Invalid padding string {self.padding!r}, should be one of {{'valid', 'same'}}")
            if self.padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in PADDING_MODES:
            raise ValueError("padding_mode must be one of {'zeros', 'reflect', 'circular', 'replicate'}, but got "
                             f"padding_mode='{self.padding_mode}'")

    def _margins(self) -> tuple[int, ...]:
        """Before and after each dimension, the last dimension first, as `F.pad` takes them."""
        if not isinstance(self.padding, str):
            return tuple(p for p in reversed(self.padding) for _ in (0, 1))
        if self.padding == "valid":
            return (0,) * (2 * self.spatial)
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
        return tuple(m for t in reversed(totals) for m in (t // 2, t - t // 2))

    def reset_parameters(self) -> None:
        """Draw new first values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            shape = self.weight.shape
            fan_in = shape[1] * math.prod(shape[2:])
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Settings that differ from the defaults."""
        count = self.spatial
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * count:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * count:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * count:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Plain(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: DeviceLike = None, dtype: DType | None = None) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
                         padding_mode, device, dtype)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        function = getattr(F, f"conv{self.spatial}d")
        if self.padding_mode == "zeros":
            return function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._margins(), PADDING_MODES[self.padding_mode])
        return function(padded, weight, bias, self.stride, (0,) * self.spatial, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of the input with the weight."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Plain):
    """Convolution of `(N, C, L)` or `(C, L)` input."""

    spatial = 1


class Conv2d(_Plain):
    """Convolution of `(N, C, H, W)` or `(C, H, W)` input.

    >>> import mindtorch_v2 as torch
    >>> torch.nn.Conv2d(3, 8, 3, padding=1)(torch.ones(2, 3, 5, 5)).shape
    torch.Size([2, 8, 5, 5])
    """

    spatial = 2


class Conv3d(_Plain):
    """Convolution of `(N, C, D, H, W)` or `(C, D, H, W)` input."""

    spatial = 3


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
                 output_padding: Sizes = 0, groups: int = 1, bias: bool = True, dilation: Sizes = 1,
                 padding_mode: str = "zeros", device: DeviceLike = None, dtype: DType | None = None) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups,
                         bias, padding_mode, device, dtype)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The transposed convolution; `output_size` chooses among the sizes that a stride leaves open."""
        extra = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, self.spatial,
                                     self.dilation)
        function = getattr(F, f"conv_transpose{self.spatial}d")
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None, stride: Sequence[int],
                        padding: Sequence[int | str], kernel_size: Sequence[int], num_spatial_dims: int,
                        dilation: Sequence[int] | None = None) -> tuple[int, ...]:
        """The output padding that gives an output size; the layer's own if none is asked for."""
        if output_size is None:
            return self.output_padding
        sizes, count = list(output_size), num_spatial_dims
        lead = input.ndim - count
        if len(sizes) == lead + count:
            sizes = sizes[lead:]
        if len(sizes) != count:
            raise ValueError(f"ConvTranspose{count}D: for {input.ndim}D input, output_size must have {count} or "
                             f"{lead + count} elements (got {len(sizes)})")
        inside = input._a.shape[lead:]
        least = [(n - 1) * s - 2 * int(p) + d * (k - 1) + 1 for n, s, p, d, k in zip(
            inside, stride, padding, (1,) * count if dilation is None else dilation, kernel_size)]
        most = [low + s - 1 for low, s in zip(least, stride)]
        if any(not low <= n <= high for low, n, high in zip(least, sizes, most)):
            raise ValueError(f"requested an output size of {tuple(sizes)}, but valid sizes range from {least} to "
                             f"{most} (for an input of torch.Size({list(inside)}))")
        return tuple(n - low for n, low in zip(sizes, least))


_ConvTransposeMixin = _ConvTransposeNd  # its older name, by which libraries know it


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of `(N, C, L)` or `(C, L)` input."""

    spatial = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of `(N, C, H, W)` or `(C, H, W)` input."""

    spatial = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of `(N, C, D, H, W)` or `(C, D, H, W)` input."""

    spatial = 3


__getattr__ = elsewhere(__name__)
