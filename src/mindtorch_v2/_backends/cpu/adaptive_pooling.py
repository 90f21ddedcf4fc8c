"""Pooling with windows that cover an image evenly, whatever its size."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.layouts import suggested_format
from ..._memory_format import contiguous_format
from . import providers
from .memory import formatted
from .pooling import check_pooled, of_images, pool_of, pooled_maxima, put_back, wide
from .windows import along, window_sum

Array = Any
Sizes = tuple[int, ...]


@functools.lru_cache(maxsize=256)
def adaptive_windows(size: int, out: int) -> tuple[Array, Array]:
    """Starts and ends of `out` windows that cover `size` elements evenly."""
    position = np.arange(out)
    return position * size // max(out, 1), -(-(position + 1) * size // max(out, 1))


def adaptive_sizes(op: str, x: Array, output_size: Any, spatial: int, after: str = "") -> Sizes:
    """The checked output sizes."""
    if x.ndim not in (spatial + 1, spatial + 2):
        raise RuntimeError(f"{op}(): Expected {spatial + 1}D or {spatial + 2}D tensor, but got{after} {list(x.shape)}")
    if len(tuple(output_size)) != spatial:
        raise RuntimeError(f"{op}(): internal error: output_size.size() must be {spatial}")
    # Means of up to two dimensions may have no channels.
    for axis in range(x.ndim - spatial if op in ("adaptive_avg_pool1d", "adaptive_avg_pool2d") else 1, x.ndim):
        if x.shape[axis] == 0:
            raise RuntimeError(f"{op}(): Expected input to have non-zero size for non-batch dimensions, but input has "
                               f"sizes {list(x.shape)} with dimension {axis} being empty")
    return tuple(int(n) for n in output_size)


def _planes(x: Array) -> Array:
    return x.reshape(-1, *x.shape[-2:])


@functools.lru_cache(maxsize=256)
def _bounds(image: Sizes, sizes: Sizes) -> tuple[Array, ...]:
    """Where windows of an image begin and end, and how many elements each has, in the form of the C kernels."""
    rows, columns = (adaptive_windows(n, out) for n, out in zip(image, sizes))
    counts = np.multiply.outer(rows[1] - rows[0], columns[1] - columns[0]).astype(np.float32)
    return (*rows, *columns, counts)


def adaptive_avg_pool(spatial: int) -> Callable[[Array, Any], Array]:
    """Kernel: means of windows that cover the image evenly."""

    def kernel(x: Array, output_size: Any) -> Array:
        sizes = adaptive_sizes(f"adaptive_avg_pool{spatial}d", x, output_size, spatial)
        if spatial == 2 and 0 not in sizes and providers.rows(x):
            made = np.empty((*x.shape[:-2], *sizes), x.dtype)
            providers.native.pool_mean(_planes(made), _planes(x), *_bounds(x.shape[-2:], sizes))
            return made
        made = wide(x)
        for axis, out in enumerate(sizes, start=-spatial):
            starts, ends = adaptive_windows(x.shape[axis], out)
            made = window_sum(made, axis, starts, ends) / along(axis, spatial, (ends - starts).astype(made.dtype))
        return made.astype(x.dtype, order="C", copy=False)

    return of_images(kernel, spatial, "_adaptive_avg_pool2d")


def adaptive_avg_pool_backward(spatial: int) -> Callable[[Array, Array], Array]:
    """Kernel: the windows that contain an element are again a window, of outputs."""

    def kernel(grad: Array, x: Array) -> Array:
        check_pooled(grad.shape, (*x.shape[:-spatial], *grad.shape[-spatial:]))
        if spatial == 2 and providers.rows(grad):
            made = np.empty(x.shape, grad.dtype)
            providers.native.pool_mean_back(_planes(made), _planes(grad), *_bounds(x.shape[-2:], grad.shape[-2:]))
            return made
        made = wide(grad)
        for axis in range(-spatial, 0):
            size, out = x.shape[axis], grad.shape[axis]
            starts, ends = adaptive_windows(size, out)
            made = made / along(axis, spatial, (ends - starts).astype(made.dtype))
            made = window_sum(made, axis, *adaptive_windows(out, size))
        return made.astype(grad.dtype, copy=False)

    return of_images(kernel, spatial, "_adaptive_avg_pool2d_backward")


def adaptive_max_pool(spatial: int) -> Callable[[Array, Any], tuple[Array, Array]]:
    """Kernel: maxima of windows that cover the image evenly, and their flat indices."""

    def kernel(x: Array, output_size: Any) -> tuple[Array, Array]:
        sizes = adaptive_sizes(f"adaptive_max_pool{spatial}d", x, output_size, spatial, ":")
        inside = x.shape[x.ndim - spatial:]
        shape = (*x.shape[: x.ndim - spatial], *sizes)
        if min(sizes) < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(shape)}")
        if 0 in shape:
            return np.empty(shape, x.dtype), np.empty(shape, np.int64)
        order = suggested_format(x) if spatial == 2 else contiguous_format
        if order is contiguous_format and not any(n % o for n, o in zip(inside, sizes)):
            window = tuple(n // o for n, o in zip(inside, sizes))
            return pooled_maxima(x, pool_of("adaptive_max_pool", x, spatial, window, window, 0, 1, False))
        if spatial == 2 and providers.rows(x):
            values, indices = np.empty(shape, x.dtype), np.empty(shape, np.int64)
            bounds = _bounds(x.shape[-2:], sizes)[:4]
            providers.native.pool_max(_planes(values), _planes(indices), _planes(x), *bounds, 1, 1)
            return values, indices
        best, chosen = _uneven_maxima(wide(x), sizes)
        # Picking windows leaves the results in an order that NumPy chooses.
        values = formatted(best.shape, x.dtype, order)
        np.copyto(values, best, casting="unsafe")
        indices = formatted(best.shape, np.dtype(np.int64), order)
        np.copyto(indices, chosen)
        return values, indices

    return of_images(kernel, spatial, "adaptive_max_pool2d")


def _uneven_maxima(x: Array, sizes: Sizes) -> tuple[Array, Array]:
    """Maxima of evenly spread windows of the last dimensions and their flat indices, one dimension at a time.

    The last dimension goes first. So the first of equal elements, and the last NaN, are those of the whole window.
    """
    best, chosen, step = x, np.zeros((), np.int64), 1
    for axis, out in zip(range(-1, -len(sizes) - 1, -1), reversed(sizes)):
        starts, ends = adaptive_windows(x.shape[axis], out)
        before, numbers = best, chosen
        for tap in range(int((ends - starts).max())):
            # Short windows see their last element twice, which changes nothing.
            places = np.minimum(starts + tap, ends - 1)
            view = before.take(places, axis)
            number = along(axis, len(sizes), places * step) + (numbers.take(places, axis) if numbers.ndim else 0)
            if not tap:
                best, chosen = view, np.array(np.broadcast_to(number, view.shape))
                continue
            larger = view > best
            larger |= view != view
            np.maximum(best, view, out=best)
            np.copyto(chosen, number, where=larger)
        step *= x.shape[axis]
    return best, chosen


def adaptive_max_pool_backward(spatial: int) -> Callable[[Array, Array, Array], Array]:
    """Kernel: the gradient goes where the maximum came from."""

    def kernel(grad: Array, x: Array, indices: Array) -> Array:
        check_pooled(grad.shape, (*x.shape[:-spatial], *grad.shape[-spatial:]))
        check_pooled(indices.shape, grad.shape)
        return put_back(grad, x.shape, indices, spatial, True)

    return of_images(kernel, spatial, "adaptive_max_pool2d_backward")
