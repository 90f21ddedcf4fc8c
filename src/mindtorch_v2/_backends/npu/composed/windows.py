"""Convolutions and pools."""

from __future__ import annotations

from typing import Any

from ...cpu.adaptive_pooling import adaptive_sizes
from ...cpu.convolution_checks import check_convolution
from ...cpu.pooling import pool_of
from ..arrays import INT32, INT64, NpuArray, contiguous, converted, new, viewed
from ..call import CALLS
from ..settings import cube, cube_convolution
from .registry import composed


def _each(values: Any, count: int) -> tuple[int, ...]:
    values = (values,) if isinstance(values, int) else tuple(values)
    return values * count if len(values) == 1 else values


def _convolved(x: NpuArray, weight: NpuArray, stride: Any, padding: Any, dilation: Any, transposed: bool,
               output_padding: Any, groups: int) -> tuple[int, ...]:
    """The shape of a convolution's result."""
    extents = []
    for i, (n, k) in enumerate(zip(x.shape[2:], weight.shape[2:], strict=True)):
        reach = dilation[i] * (k - 1) + 1
        if transposed:
            extents.append((n - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i])
        else:
            extents.append((n + 2 * padding[i] - reach) // stride[i] + 1)
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    return (x.shape[0], channels, *extents)


@composed("convolution")
def convolution(input: NpuArray, weight: NpuArray, bias: Any, stride: Any, padding: Any, dilation: Any,
                transposed: bool, output_padding: Any, groups: int) -> NpuArray:
    """A convolution of one, two or three dimensions."""
    count = weight.ndim - 2
    single = input.ndim == count + 1
    x = viewed(contiguous(input), (1, *input.shape)) if single else input
    check_convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    stride, padding, dilation, output_padding = (_each(v, count) for v in (stride, padding, dilation, output_padding))
    out = new(x, _convolved(x, weight, stride, padding, dilation, transposed, output_padding, groups))
    if out.size:
        CALLS.Convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, out,
                          cube_convolution())
    return viewed(out, out.shape[1:]) if single else out


@composed("_convolution")
def _convolution_with_switches(*arguments: Any) -> NpuArray:
    return convolution(*arguments[:9])


@composed("mkldnn_convolution")
def _convolution_in_its_order(self: NpuArray, weight: NpuArray, bias: Any, padding: Any, stride: Any, dilation: Any,
                              groups: int) -> NpuArray:
    return convolution(self, weight, bias, stride, padding, dilation, False, (0,) * (weight.ndim - 2), groups)


@composed("convolution_backward")
def convolution_backward(grad: NpuArray, input: NpuArray, weight: NpuArray, bias_sizes: Any, stride: Any, padding: Any,
                         dilation: Any, transposed: bool, output_padding: Any, groups: int,
                         mask: Any) -> tuple[Any, Any, Any]:
    """Gradients of a convolution."""
    count = weight.ndim - 2
    stride, padding, dilation, output_padding = (_each(v, count) for v in (stride, padding, dilation, output_padding))
    channels = grad.shape[1]
    made = [new(input, input.shape) if mask[0] else None, new(weight, weight.shape) if mask[1] else None,
            new(weight, (channels,)) if mask[2] else None]
    CALLS.ConvolutionBackward(grad, input, weight, (channels,), stride, padding, dilation, transposed, output_padding,
                              groups, tuple(mask), cube_convolution(), *made)
    return tuple([new(input, (0,)) if one is None else one for one in made])  # type: ignore[return-value]


@composed("max_pool2d_with_indices")
def max_pool(self: NpuArray, kernel: Any, stride: Any, padding: Any, dilation: Any,
             ceil_mode: bool) -> tuple[NpuArray, NpuArray]:
    """The largest of each window, and where it is in its plane."""
    pool = pool_of("max_pool2d", self, 2, kernel, stride, padding, dilation, ceil_mode)
    shape = (*pool.lead, *pool.out)
    out, places = new(self, shape), new(self, shape, INT32)
    CALLS.MaxPool2dWithIndices(contiguous(self), pool.kernel, pool.stride, pool.padding, pool.dilation, ceil_mode, out,
                               places)
    return out, converted(places, INT64)


@composed("max_pool2d_with_indices_backward")
def max_pool_backward(grad: NpuArray, self: NpuArray, kernel: Any, stride: Any, padding: Any, dilation: Any,
                      ceil_mode: bool, indices: NpuArray) -> NpuArray:
    """Gradients to where the largest were."""
    kernel = _each(kernel, 2)
    stride, padding, dilation = _each(stride, 2) or kernel, _each(padding, 2), _each(dilation, 2)
    out = new(self, self.shape)
    CALLS.MaxPool2dWithIndicesBackward(contiguous(grad), contiguous(self), converted(indices, INT32), kernel, stride,
                                       padding, dilation, ceil_mode, out)
    return out


@composed("avg_pool2d")
def avg_pool(self: NpuArray, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, include: bool,
             divisor: Any) -> NpuArray:
    """The mean of each window."""
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    pool = pool_of("avg_pool2d", self, 2, kernel, stride, padding, 1, ceil_mode)
    out = new(self, (*pool.lead, *pool.out))
    CALLS.AvgPool2d(contiguous(self), pool.kernel, pool.stride, pool.padding, ceil_mode, include, divisor or 0, cube(),
                    out)
    return out


@composed("avg_pool2d_backward")
def avg_pool_backward(grad: NpuArray, self: NpuArray, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
                      include: bool, divisor: Any) -> NpuArray:
    """Gradients spread over windows."""
    kernel = _each(kernel, 2)
    stride, padding = _each(stride, 2) or kernel, _each(padding, 2)
    out = new(self, self.shape)
    CALLS.AvgPool2dBackward(contiguous(grad), contiguous(self), kernel, stride, padding, ceil_mode, include,
                            divisor or 0, cube(), out)
    return out


@composed("_adaptive_avg_pool2d")
def adaptive_avg_pool(self: NpuArray, size: Any) -> NpuArray:
    """Means of as many windows as are asked for."""
    size = adaptive_sizes("adaptive_avg_pool2d", self, size, 2)
    out = new(self, (*self.shape[:-2], *size))
    if out.size:
        CALLS.AdaptiveAvgPool2d(contiguous(self), size, out)
    return out


@composed("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool_backward(grad: NpuArray, self: NpuArray) -> NpuArray:
    """Gradients spread over such windows."""
    out = new(self, self.shape)
    if out.size:
        CALLS.AdaptiveAvgPool2dBackward(contiguous(grad), contiguous(self), out)
    return out
