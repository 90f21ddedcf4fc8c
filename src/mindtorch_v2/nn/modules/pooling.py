"""Pooling layers; the classes of one kind differ in their number of dimensions only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from ._homes import elsewhere
from .module import Module

Sizes = int | Sequence[int]


def _single(value: Any) -> Any:
    return tuple(value) if isinstance(value, Sequence) else (value,)


class _MaxPoolNd(Module):
    spatial = 0

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Maxima of windows; with `return_indices` also where they are."""
        function = getattr(F, f"max_pool{self.spatial}d")
        return function(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
                        self.return_indices)

    def extra_repr(self) -> str:
        """Settings."""
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPoolNd):
    """Maxima of windows of `(N, C, L)` or `(C, L)` input."""

    spatial = 1


class MaxPool2d(_MaxPoolNd):
    """Maxima of windows of `(N, C, H, W)` or `(C, H, W)` input."""

    spatial = 2


class MaxPool3d(_MaxPoolNd):
    """Maxima of windows of `(N, C, D, H, W)` or `(C, D, H, W)` input."""

    spatial = 3


class _MaxUnpoolNd(Module):
    spatial = 0

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        self.stride = self._each(stride if stride is not None else kernel_size)
        self.padding = self._each(padding)

    def _each(self, value: Sizes) -> tuple[int, ...]:
        return tuple(value) if isinstance(value, Sequence) else (value,) * self.spatial

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Values back at the places that pooling took them from."""
        function = getattr(F, f"max_unpool{self.spatial}d")
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """Settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """The inverse of `MaxPool1d` up to zeros."""

    spatial = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """The inverse of `MaxPool2d` up to zeros."""

    spatial = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """The inverse of `MaxPool3d` up to zeros."""

    spatial = 3


class _AvgPoolNd(Module):
    def extra_repr(self) -> str:
        """Settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Means of windows of `(N, C, L)` or `(C, L)` input."""

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Means of windows."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _SpatialAvgPool(_AvgPoolNd):
    spatial = 0

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Means of windows."""
        function = getattr(F, f"avg_pool{self.spatial}d")
        return function(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                        self.divisor_override)


class AvgPool2d(_SpatialAvgPool):
    """Means of windows of `(N, C, H, W)` or `(C, H, W)` input."""

    spatial = 2


class AvgPool3d(_SpatialAvgPool):
    """Means of windows of `(N, C, D, H, W)` or `(C, D, H, W)` input."""

    spatial = 3


class _LPPoolNd(Module):
    spatial = 0

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Norms of windows."""
        function = getattr(F, f"lp_pool{self.spatial}d")
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """Settings."""
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")


class LPPool1d(_LPPoolNd):
    """Norms of windows of `(N, C, L)` or `(C, L)` input."""

    spatial = 1


class LPPool2d(_LPPoolNd):
    """Norms of windows of `(N, C, H, W)` or `(C, H, W)` input."""

    spatial = 2


class LPPool3d(_LPPoolNd):
    """Norms of windows of `(N, C, D, H, W)` or `(C, D, H, W)` input."""

    spatial = 3


class _AdaptivePool(Module):
    spatial = 0

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The output size."""
        return f"output_size={self.output_size}"


class _AdaptiveAvgPoolNd(_AdaptivePool):
    def forward(self, input: Tensor) -> Tensor:
        """Means of as many windows as asked for."""
        return getattr(F, f"adaptive_avg_pool{self.spatial}d")(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of as many windows as asked for, of `(N, C, L)` or `(C, L)` input."""

    spatial = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of as many windows as asked for, of `(N, C, H, W)` or `(C, H, W)` input."""

    spatial = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of as many windows as asked for, of `(N, C, D, H, W)` or `(C, D, H, W)` input."""

    spatial = 3


class _AdaptiveMaxPoolNd(_AdaptivePool):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Maxima of as many windows as asked for."""
        return getattr(F, f"adaptive_max_pool{self.spatial}d")(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows as asked for, of `(N, C, L)` or `(C, L)` input."""

    spatial = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows as asked for, of `(N, C, H, W)` or `(C, H, W)` input."""

    spatial = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of as many windows as asked for, of `(N, C, D, H, W)` or `(C, D, H, W)` input."""

    spatial = 3


__getattr__ = elsewhere(__name__)
