"""Convolutions and pools."""

from __future__ import annotations

from typing import Any

from ...cpu.convolution_checks import check_convolution
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


def _pooled(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    reach = dilation * (kernel - 1) + 1
    extent = (n + 2 * padding - reach + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (extent - 1) * stride >= n + padding:
        extent -= 1
    return extent


def _pool_shape(x: NpuArray, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> tuple[int, ...]:
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero")
    if min(kernel) <= 0:
        raise RuntimeError("kernel size should be greater than zero, but got kH: {} kW: {}".format(*kernel))
    if 0 in x.shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:"
                           f"{list(x.shape)}")
    extents = [_pooled(n, k, s, p, d, ceil_mode)
               for n, k, s, p, d in zip(x.shape[-2:], kernel, stride, padding, dilation, strict=True)]
    if min(extents) < 1:
        raise RuntimeError(f"Given input size: ({'x'.join(map(str, x.shape[-3:]))}). Calculated output size: "
                           f"({'x'.join(map(str, (x.shape[-3], *extents)))}). Output size is too small")
    return (*x.shape[:-2], *extents)


@composed("max_pool2d_with_indices")
def max_pool(self: NpuArray, kernel: Any, stride: Any, padding: Any, dilation: Any,
             ceil_mode: bool) -> tuple[NpuArray, NpuArray]:
    """The largest of each window, and where it is in its plane."""
    kernel = _each(kernel, 2)
    stride, padding, dilation = _each(stride, 2) or kernel, _each(padding, 2), _each(dilation, 2)
    shape = _pool_shape(self, kernel, stride, padding, dilation, ceil_mode)
    out, places = new(self, shape), new(self, shape, INT32)
    CALLS.MaxPool2dWithIndices(contiguous(self), kernel, stride, padding, dilation, ceil_mode, out, places)
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
    kernel = _each(kernel, 2)
    stride, padding = _each(stride, 2) or kernel, _each(padding, 2)
    out = new(self, _pool_shape(self, kernel, stride, padding, (1, 1), ceil_mode))
    CALLS.AvgPool2d(contiguous(self), kernel, stride, padding, ceil_mode, include, divisor or 0, cube(), out)
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
    size = tuple([n if wanted is None else wanted
                  for n, wanted in zip(self.shape[-2:], _each(size, 2), strict=True)])
    out = new(self, (*self.shape[:-2], *size))
    CALLS.AdaptiveAvgPool2d(contiguous(self), size, out)
    return out


@composed("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool_backward(grad: NpuArray, self: NpuArray) -> NpuArray:
    """Gradients spread over such windows."""
    out = new(self, self.shape)
    CALLS.AdaptiveAvgPool2dBackward(contiguous(grad), contiguous(self), out)
    return out
