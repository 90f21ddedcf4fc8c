"""Pooling and its inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from ._refusing import refuse_gradient

Sizes = int | Sequence[int]


def _steps(stride: Sizes | None) -> Sizes:
    return () if stride is None else stride


def _max_pool(spatial: int) -> Any:
    name = f"max_pool{spatial}d"

    def function(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 dilation: Sizes = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
        op = getattr(aten, f"{name}_with_indices" if return_indices else name)
        return op(input, kernel_size, _steps(stride), padding, dilation, ceil_mode)

    def with_indices(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                     dilation: Sizes = 1, ceil_mode: bool = False, return_indices: bool = False) -> Any:
        return function(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Maxima of {spatial}-dimensional windows; with `return_indices` also where they are."
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    with_indices.__doc__ = f"Maxima of {spatial}-dimensional windows and where they are."
    return function, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)


def avg_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """Means of windows."""
    return aten.avg_pool1d(input, kernel_size, _steps(stride), padding, ceil_mode, count_include_pad)


def avg_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None, *,
               out: Tensor | None = None) -> Tensor:
    """Means of two-dimensional windows."""
    return aten.avg_pool2d(input, kernel_size, _steps(stride), padding, ceil_mode, count_include_pad, divisor_override,
                           out=out)


def avg_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None, *,
               out: Tensor | None = None) -> Tensor:
    """Means of three-dimensional windows."""
    return aten.avg_pool3d(input, kernel_size, _steps(stride), padding, ceil_mode, count_include_pad, divisor_override,
                           out=out)


def _filled(output_size: Any, input: Tensor, spatial: int) -> tuple[int, ...]:
    """Output sizes where None means the input's."""
    if isinstance(output_size, int):
        return (output_size,) * spatial
    if output_size is None:
        raise TypeError("object of type 'NoneType' has no len(): output_size has one size for each dimension, and None "
                        "in it means the input's")
    sizes = tuple(output_size)
    inside = input._a.shape[-len(sizes):]
    if len(input._a.shape) <= len(sizes):
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}")
    return tuple(n if given is None else given for given, n in zip(sizes, inside))


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows as asked for."""
    return aten.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many two-dimensional windows as asked for."""
    return aten.adaptive_avg_pool2d(input, _filled(output_size, input, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many three-dimensional windows as asked for."""
    return aten.adaptive_avg_pool3d(input, _filled(output_size, input, 3))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many windows as asked for."""
    made = aten.adaptive_max_pool1d(input, output_size)
    return made if return_indices else made[0]


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many two-dimensional windows as asked for."""
    made = aten.adaptive_max_pool2d(input, _filled(output_size, input, 2))
    return made if return_indices else made[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many three-dimensional windows as asked for."""
    made = aten.adaptive_max_pool3d(input, _filled(output_size, input, 3))
    return made if return_indices else made[0]


def _lp_pool(input: Tensor, norm_type: float, kernel: Sequence[int], stride: Sizes | None, ceil_mode: bool,
             spatial: int) -> Tensor:
    if isinstance(norm_type, (int, float)) and math.isinf(norm_type):
        largest = getattr(aten, f"max_pool{spatial}d")
        if norm_type > 0:
            return largest(aten.abs(input), kernel, _steps(stride), 0, 1, ceil_mode)
        return aten.neg(largest(aten.neg(aten.abs(input)), kernel, _steps(stride), 0, 1, ceil_mode))
    powers = aten.pow(input, norm_type)
    pool = getattr(aten, f"avg_pool{spatial}d")
    made = pool(powers, kernel, _steps(stride), 0, ceil_mode)
    count = 1
    for k in kernel:
        count *= k
    return aten.pow(aten.sign(made) * aten.relu(aten.abs(made)) * count, 1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Sizes | None = None,
              ceil_mode: bool = False) -> Tensor:
    """Norms of windows."""
    kernel = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
    return _lp_pool(input, norm_type, kernel, stride, ceil_mode, 1)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
              ceil_mode: bool = False) -> Tensor:
    """Norms of two-dimensional windows."""
    kernel = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
    return _lp_pool(input, norm_type, kernel, stride, ceil_mode, 2)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
              ceil_mode: bool = False) -> Tensor:
    """Norms of three-dimensional windows."""
    kernel = (kernel_size,) * 3 if isinstance(kernel_size, int) else tuple(kernel_size)
    return _lp_pool(input, norm_type, kernel, stride, ceil_mode, 3)


def _unpooled(input: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, output_size: Any,
              spatial: int) -> tuple[Any, Any, Any]:
    """Output sizes, strides and padding of an unpooling."""

    def each(value: Any) -> tuple[int, ...]:
        return (value,) * spatial if isinstance(value, int) else tuple(value)

    kernel, margins = each(kernel_size), each(padding)
    steps = kernel if stride is None else each(stride)
    return _unpool_output_size(input, kernel, steps, margins, output_size), steps, margins


def _unpool_output_size(input: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
                        output_size: Sequence[int] | None) -> list[int]:
    """The sizes of an unpooling's result, after checking those that were asked for."""
    spatial = len(kernel_size)
    default = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input._a.shape[-spatial:], stride, kernel_size, padding)]
    if output_size is None:
        return default
    sizes = list(output_size)
    if len(sizes) == spatial + 2:
        sizes = sizes[2:]
    if len(sizes) != spatial:
        raise ValueError(f"output_size should be a sequence containing {spatial} or {spatial + 2} elements, but it has "
                         f"a length of '{len(sizes)}'")
    for d, (size, usual, step) in enumerate(zip(sizes, default, stride)):
        if not usual - step < size < usual + step:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {usual - step} and '
                             f'{usual + step})')
    return sizes


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 output_size: Any = None) -> Tensor:
    """Values back at the places that `max_pool1d` took them from."""
    if input.ndim > 3:
        raise RuntimeError("Input to max_unpooling1d should be a 2d or 3d Tensor, but got a tensor with "
                           f"{input.ndim} dimensions.")
    sizes, _, _ = _unpooled(input, kernel_size, stride, padding, output_size, 1)
    made = aten.max_unpool2d(aten.unsqueeze(input, -1), aten.unsqueeze(indices, -1), (*sizes, 1))
    return aten.squeeze(made, -1)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 output_size: Any = None) -> Tensor:
    """Values back at the places that `max_pool2d` took them from."""
    sizes, _, _ = _unpooled(input, kernel_size, stride, padding, output_size, 2)
    return aten.max_unpool2d(input, indices, sizes)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                 output_size: Any = None) -> Tensor:
    """Values back at the places that `max_pool3d` took them from."""
    sizes, steps, margins = _unpooled(input, kernel_size, stride, padding, output_size, 3)
    return aten.max_unpool3d(input, indices, sizes, steps, margins)


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many windows as asked for, and where they are."""
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many two-dimensional windows as asked for, and where they are."""
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many three-dimensional windows as asked for, and where they are."""
    return adaptive_max_pool3d(input, output_size, True)


def _fractional(input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None,
                spatial: int) -> Any:
    def each(value: Any) -> tuple[Any, ...]:
        return (value,) * spatial if isinstance(value, (int, float)) else tuple(value)

    if input.ndim not in (spatial + 1, spatial + 2):
        raise IndexError(f"Dimension out of range: fractional_max_pool{spatial}d takes {spatial + 1} or {spatial + 2} "
                         f"dimensions, but the input has {input.ndim}")
    name = f"fractional_max_pool{spatial}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if spatial == 2 and isinstance(output_ratio, (int, float)):
            raise TypeError(f"object of type '{type(output_ratio).__name__}' has no len(): {name} takes one "
                            "output_ratio for each dimension")
        if len(each(output_ratio)) > spatial:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = [int(n * ratio) for n, ratio in zip(input._a.shape[-spatial:], each(output_ratio), strict=True)]
    if len(each(output_size)) != spatial:
        raise RuntimeError(f"{name}: output_size must either be a single Int or tuple of Ints")
    if len(each(kernel_size)) != spatial:
        raise RuntimeError(f"{name}: kernel_size must either be a single Int or tuple of Ints")
    if samples is None:
        batch = 1 if input.ndim == spatial + 1 else input._a.shape[0]
        samples = aten.rand(batch, input._a.shape[-spatial - 1], spatial, dtype=input.dtype, device=input.device)
    refuse_gradient(name, "random_samples", samples)
    return getattr(aten, name)(input, each(kernel_size), each(output_size), samples)


def fractional_max_pool2d(input: Tensor, kernel_size: Sizes, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """Maxima of two-dimensional windows at random places, for a given output size or ratio of sizes."""
    made = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)
    return made if return_indices else made[0]


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: Sizes, output_size: Any = None,
                                       output_ratio: Any = None, return_indices: bool = False,
                                       _random_samples: Tensor | None = None) -> Any:
    """`fractional_max_pool2d`, and where the maxima are."""
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d(input: Tensor, kernel_size: Sizes, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """Maxima of three-dimensional windows at random places, for a given output size or ratio of sizes."""
    made = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)
    return made if return_indices else made[0]


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: Sizes, output_size: Any = None,
                                       output_ratio: Any = None, return_indices: bool = False,
                                       _random_samples: Tensor | None = None) -> Any:
    """`fractional_max_pool3d`, and where the maxima are."""
    return fractional_max_pool3d(input, kernel_size, output_size, output_ratio, True, _random_samples)
