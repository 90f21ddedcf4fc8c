"""Pooling kernels: loops over a window's elements, each a whole array at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..._deterministic import alert
from ..._dispatch.promotion import FLOAT_DTYPES, pretty
from ..._dtype import FROM_NUMPY, HALF_TYPES
from . import providers
from .maxima import window_maxima
from .memory import zero_
from .scatter import ADD_TO
from .windows import along, expand_sizes, padded_copy, taps

Array = Any
Sizes = tuple[int, ...]


def wide(a: Array) -> Array:
    """16-bit floats as float32."""
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


LARGEST = 2**31 - 1  # PyTorch describes windows in 32 bits
NUMBERS = {2: "two", 3: "three"}
DIRECTIONS = ("depth", "height", "width")


def _times(values: Any) -> str:
    return "x".join(str(v) for v in values)


def of_images(kernel: Callable[..., Any], spatial: int, name: str) -> Callable[..., Any]:
    """A kernel that tries the C kernel of this name first, for images."""
    return providers.direct(name)(kernel) if spatial == 2 else kernel


class Pool:
    """The checked geometry of one pooling call."""

    def __init__(self, op: str, shape: Sizes, spatial: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                 ceil_mode: bool) -> None:
        self.kernel = expand_sizes(kernel_size, spatial, op, "kernel_size")
        no_stride = not hasattr(stride, "__index__") and not len(stride)
        self.stride = self.kernel if no_stride else expand_sizes(stride, spatial, op, "stride")
        self.padding = expand_sizes(padding, spatial, op, "padding")
        self.dilation = expand_sizes(dilation, spatial, op, "dilation")
        if max(map(abs, self.kernel + self.stride + self.padding + self.dilation)) > LARGEST:
            raise RuntimeError(f"{op}: value cannot be converted to type int without overflow")
        self.check(shape, spatial)
        self.lead, self.sizes = shape[: len(shape) - spatial], shape[len(shape) - spatial:]
        self.out = tuple(self.count(i, ceil_mode) for i in range(spatial))
        if min(self.out) < 1:
            channels = self.lead[-1]
            raise RuntimeError(f"Given input size: ({_times((channels, *self.sizes))}). Calculated output size: "
                               f"({_times((channels, *self.out))}). Output size is too small")
        # With ceil_mode the last window may reach beyond the padding.
        self.after = tuple(max(0, (o - 1) * s + d * (k - 1) + 1 - n - p) for o, s, d, k, n, p in zip(
            self.out, self.stride, self.dilation, self.kernel, self.sizes, self.padding))
        self.steps = tuple(math.prod(self.sizes[i + 1:]) for i in range(spatial))

    def check(self, shape: Sizes, spatial: int) -> None:
        if min(self.stride) == 0:
            raise RuntimeError("stride should not be zero")
        if min(self.kernel) <= 0:
            raise RuntimeError(f"kernel size should be greater than zero, but got {_times(self.kernel)}")
        if min(self.dilation) <= 0:
            letters = "THW"[-spatial:]
            shown = " ".join(f"dilation{letter}: {d}" for letter, d in zip(letters, self.dilation))
            raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
        if len(shape) not in (spatial + 1, spatial + 2):
            raise RuntimeError(f"non-empty {spatial + 1}D or {spatial + 2}D (batch mode) tensor expected for input")
        for p, k, d in zip(self.padding, self.kernel, self.dilation):
            if p < 0:
                raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
            if p > ((k - 1) * d + 1) // 2:
                raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, "
                                   f"kernel_size={k} and dilation={d}")
        inner = shape[len(shape) - spatial - 1:]
        if 0 in inner and spatial == 3:
            where = len(shape) - len(inner) + inner.index(0)
            raise RuntimeError("pooling of volumes: Expected input's non-batch dimensions to have positive length, but "
                               f"input has a shape of {list(shape)} and non-batch dimension {where - 1} has length "
                               "zero!")
        if 0 in inner:
            raise RuntimeError(f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with optional 0 dim "
                               f"batch size for input, but got:{list(shape)}")

    def count(self, i: int, ceil_mode: bool) -> int:
        n, p, s = self.sizes[i], self.padding[i], self.stride[i]
        reach = n + 2 * p - self.dilation[i] * (self.kernel[i] - 1) - 1
        out = (reach + (s - 1 if ceil_mode else 0)) // s + 1
        # A window must start inside the image or its left padding.
        return out - 1 if ceil_mode and (out - 1) * s >= n + p else out

    def taps(self) -> Any:
        return taps(self.kernel, self.stride, self.dilation, self.out)

    def overlaps(self) -> bool:
        return any(s < d * (k - 1) + 1 for s, d, k in zip(self.stride, self.dilation, self.kernel))

    def grid(self, vectors: list[Array]) -> Array:
        """The sum of one vector per dimension, over all positions."""
        total: Array = 0
        for axis, vector in enumerate(vectors, start=-len(vectors)):
            total = total + along(axis, len(vectors), vector)
        return np.asarray(total)

    @cached_property
    def bounds(self) -> tuple[Array, ...]:
        """Where windows begin and end inside the image, in the form of the C kernels; a line is an image of one row."""
        made = []
        for o, s, p, k, d, n in zip(self.out, self.stride, self.padding, self.kernel, self.dilation, self.sizes):
            start = np.arange(o, dtype=np.int64) * s - p
            made += [np.where(start < 0, start % d, start), np.minimum(start + d * (k - 1) + 1, n)]
        return tuple(made) if len(self.out) == 2 else (np.zeros(1, np.int64), np.ones(1, np.int64), *made)

    def planes(self, x: Array) -> Array:
        """An array of images or of results as planes."""
        return x.reshape(-1, 1 if len(self.out) == 1 else x.shape[-2], x.shape[-1])

    @cached_property
    def offsets(self) -> Array:
        """The distance of each element of a window from its first one, in the image."""
        return np.array([sum(t * d * s for t, d, s in zip(tap, self.dilation, self.steps)) for tap, _ in self.taps()],
                        np.int64)

    @cached_property
    def starts(self) -> tuple[Array, Array]:
        """The flat index of every window's first element, and the index to use if all elements are lowest."""
        starts = [np.arange(o) * s - p for o, s, p in zip(self.out, self.stride, self.padding)]
        base = self.grid([start * step for start, step in zip(starts, self.steps)])
        if not any(self.padding):
            return base, base
        # The first element is chosen in the padding only if all are lowest: then the first real one is meant.
        real = [np.where(start < 0, start % d, start) for start, d in zip(starts, self.dilation)]
        return base, self.grid([start * step for start, step in zip(real, self.steps)])


def _hashed(value: Any) -> Any:
    return value if hasattr(value, "__index__") else tuple(value)


def pool_of(op: str, x: Array, spatial: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
            ceil_mode: bool) -> Pool:
    """The geometry of a call, cached: a network uses the same few again and again."""
    return _kept_pool(op, x.shape, spatial, _hashed(kernel_size), _hashed(stride), _hashed(padding), _hashed(dilation),
                      ceil_mode)


_kept_pool = lru_cache(maxsize=64)(Pool)


# -- maximum -----------------------------------------------------------------------------------------------------------


def lowest(dtype: np.dtype) -> Any:
    """The lowest value of a type."""
    return -np.inf if dtype in FLOAT_DTYPES else np.iinfo(dtype).min


def _largest(views: list[tuple[int, Array]]) -> tuple[Array, Array]:
    """The largest of some arrays, element by element, and the number that came with it; the first of equals.

    NaN is larger than everything and, as in PyTorch, the last one wins.
    """
    number, first = views[0]
    best = first.copy()
    chosen = np.full(best.shape, number, np.int64)
    for number, view in views[1:]:
        larger = view > best
        larger |= view != view
        np.maximum(best, view, out=best)
        np.copyto(chosen, number, where=larger)
    return best, chosen


def _maxima(x: Array, pool: Pool) -> tuple[Array, Array]:
    """Maxima and their positions, counted from their window's first element."""
    if x.size:
        best, chosen = window_maxima(x, pool.kernel, pool.stride, pool.dilation, pool.out, pool.padding, pool.after,
                                     lowest(x.dtype))
        # A sum is NaN if an element is, and rarely otherwise.
        if x.dtype not in FLOAT_DTYPES or not np.isnan(best.sum()):
            return best, pool.offsets.take(chosen)
    padded = padded_copy(x, pool.padding, pool.after, lowest(x.dtype))
    return _largest([(offset, padded[key]) for offset, (_, key) in zip(pool.offsets.tolist(), pool.taps())])


def refuse_bool(x: Array, op: str) -> None:
    """Refuse booleans, which are not pooled."""
    if x.dtype == np.bool_:
        raise NotImplementedError(f"\"{op}\" not implemented for 'Bool'")


def max_pool(spatial: int) -> Callable[..., tuple[Array, Array]]:
    """Kernel: maxima and their positions in the image, as flat indices."""
    op = f"max_pool{spatial}d"

    def kernel(x: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
               ceil_mode: bool) -> tuple[Array, Array]:
        pool = pool_of(op, x, spatial, kernel_size, stride, padding, dilation, ceil_mode)
        refuse_bool(x, op)
        return pooled_maxima(x, pool)

    return of_images(kernel, spatial, "max_pool2d_with_indices")


def pooled_maxima(x: Array, pool: Pool) -> tuple[Array, Array]:
    """Maxima of all windows and their positions in the image, as flat indices."""
    if len(pool.out) < 3 and providers.rows(x):
        shape = (*pool.lead, *pool.out)
        made, where = np.empty(shape, x.dtype), np.empty(shape, np.int64)
        providers.native.pool_max(pool.planes(made), pool.planes(where), pool.planes(x), *pool.bounds,
                                  *((1,) * (2 - len(pool.out))), *pool.dilation)
        return made, where
    best, chosen = _maxima(wide(x), pool)
    base, first = pool.starts
    if first is base:
        chosen += base
    else:
        chosen = np.where(chosen == 0, first, chosen + base)
    return best.astype(x.dtype, copy=False), chosen


def put_back(grad: Array, shape: Sizes, indices: Array, spatial: int, add: bool) -> Array:
    """Values at flat indices of the last dimensions of an array of zeros."""
    rows, area = math.prod(shape[: len(shape) - spatial]), math.prod(shape[len(shape) - spatial:])
    values = wide(grad).reshape(-1)
    made = zero_(np.empty(rows * area, values.dtype))
    if not grad.size:
        return made.reshape(shape).astype(grad.dtype, copy=False)
    if add and providers.rows(values) and providers.native.along(
            ADD_TO, made.reshape(rows, area), np.ascontiguousarray(indices.reshape(rows, -1)),
            values.reshape(rows, -1), 1):
        return made.reshape(shape).astype(grad.dtype, copy=False)
    places = (indices.reshape(rows, -1) + np.arange(rows)[:, None] * area).reshape(-1)
    if add:
        np.add.at(made, places, values)
    else:
        made[places] = values
    return made.reshape(shape).astype(grad.dtype, copy=False)


def check_pooled(shape: Sizes, wanted: Sizes) -> None:
    """Raise an error unless a gradient, or indices, have the shape that pooling gave."""
    if len(shape) != len(wanted):
        raise RuntimeError(f"Expected a tensor of dimension {len(wanted)}, as pooling gives, but got: dimension "
                           f"{len(shape)}")
    for axis, (found, size) in enumerate(zip(shape, wanted)):
        if found != size:
            raise RuntimeError(f"Expected a tensor of dimension {len(wanted)} and tensor.size[{axis}] == {size} but "
                               f"got: dimension {len(shape)} and tensor.size[{axis}] = {found}")


def max_pool_backward(spatial: int) -> Callable[..., Array]:
    """Kernel: the gradient goes where the maximum came from."""
    op = f"max_pool{spatial}d"

    def kernel(grad: Array, x: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
               indices: Array) -> Array:
        pool = pool_of(op, x, spatial, kernel_size, stride, padding, dilation, ceil_mode)
        for given in (grad, indices):
            check_pooled(given.shape, (*pool.lead, *pool.out))
        return put_back(grad, x.shape, indices, spatial, pool.overlaps())

    return of_images(kernel, spatial, "max_pool2d_with_indices_backward")


def max_unpool(spatial: int) -> Callable[..., Array]:
    """Kernel: values back at the positions that pooling took them from."""

    def kernel(x: Array, indices: Array, output_size: Any, stride: Any = None, padding: Any = None) -> Array:
        alert(f"max_unpooling{spatial}d_forward_out")
        sizes = tuple(int(n) for n in output_size)
        for label, given in (("output_size", sizes), ("stride", stride), ("padding", padding)):
            if given is not None and len(given) != spatial:
                raise RuntimeError(f"There should be exactly {NUMBERS[spatial]} elements "
                                   f"({', '.join(DIRECTIONS[-spatial:])}) in {label}, but got {len(given)} elements.")
        if indices.dtype != np.int64:
            raise RuntimeError(f"elements in indices should be type int64 but got: {pretty(FROM_NUMPY[indices.dtype])}")
        if indices.shape != x.shape:
            raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) "
                               f"but got indices tensor with shape: {list(indices.shape)}")
        if 0 in x.shape[1:]:
            raise RuntimeError(f"max_unpooling{spatial}d_forward_out_cpu(): Expected input to have non-zero size for "
                               f"non-batch dimensions, but got {list(x.shape)}")
        if x.ndim not in (spatial + 1, spatial + 2):
            raise RuntimeError(f"Input to max_unpooling{spatial}d should be a {spatial + 1}d or {spatial + 2}d Tensor, "
                               f"but got a tensor with {x.ndim} dimensions.")
        if stride is not None and min(stride) <= 0:
            raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
        area = math.prod(sizes)
        wrong = (indices < 0) | (indices >= area)
        if wrong.any():
            raise RuntimeError(f"Found an invalid max index: {indices[wrong][0]} (output volumes are of size "
                               f"{_times(sizes)})")
        return put_back(x, (*x.shape[: x.ndim - spatial], *sizes), indices, spatial, False)

    return kernel


# -- average -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _divisor(pool: Pool, count_include_pad: bool, divisor_override: int | None) -> Any:
    if divisor_override is not None:
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        return divisor_override
    total: Array = np.ones((), np.int64)
    for o, s, p, k, n in zip(pool.out, pool.stride, pool.padding, pool.kernel, pool.sizes):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        total = total[..., None] * (end - start)
    first = total.reshape(-1)[0]
    return first if bool((total == first).all()) else total


def _divisors(pool: Pool, divisor: Any) -> Array:
    """One divisor for each window, in the form of the C kernels."""
    shape = pool.out if len(pool.out) == 2 else (1, *pool.out)
    return np.ascontiguousarray(np.broadcast_to(np.asarray(divisor, np.float32), shape))


def _divided(a: Array, divisor: Any) -> Array:
    if a.dtype in FLOAT_DTYPES:
        return a / np.asarray(divisor, a.dtype)
    return (a / divisor).astype(a.dtype)


def avg_pool(spatial: int) -> Callable[..., Array]:
    """Kernel: means of windows, summed one dimension at a time."""
    op = f"avg_pool{spatial}d"

    def kernel(x: Array, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
               divisor_override: int | None) -> Array:
        pool = pool_of(op, x, spatial, kernel_size, stride, padding, 1, ceil_mode)
        divisor = _divisor(pool, count_include_pad, divisor_override)
        refuse_bool(x, op)
        if spatial < 3 and providers.rows(x):
            made = np.empty((*pool.lead, *pool.out), x.dtype)
            providers.native.pool_mean(pool.planes(made), pool.planes(x), *pool.bounds, _divisors(pool, divisor))
            return made
        made = padded_copy(wide(x), pool.padding, pool.after, 0)
        for i in range(spatial):
            made = _sum_along(made, i - spatial, pool.kernel[i], pool.stride[i], pool.out[i])
        return _divided(made, divisor).astype(x.dtype, copy=False)

    return of_images(kernel, spatial, op)


def _tap_key(axis: int, tap: int, stride: int, out: int) -> tuple[Any, ...]:
    return (..., slice(tap, tap + (out - 1) * stride + 1, stride), *(slice(None),) * (-axis - 1))


def _sum_along(x: Array, axis: int, kernel: int, stride: int, out: int) -> Array:
    total = x[_tap_key(axis, 0, stride, out)].copy()
    for tap in range(1, kernel):
        total += x[_tap_key(axis, tap, stride, out)]
    return total


def avg_pool_backward(spatial: int) -> Callable[..., Array]:
    """Kernel: every element of a window gets its part of the gradient."""
    op = f"avg_pool{spatial}d"

    def kernel(grad: Array, x: Array, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
               count_include_pad: bool, divisor_override: int | None) -> Array:
        pool = pool_of(op, x, spatial, kernel_size, stride, padding, 1, ceil_mode)
        check_pooled(grad.shape, (*pool.lead, *pool.out))
        if spatial < 3 and providers.rows(grad):
            made = np.empty(x.shape, grad.dtype)
            divisors = _divisors(pool, _divisor(pool, count_include_pad, divisor_override))
            providers.native.pool_mean_back(pool.planes(made), pool.planes(grad), *pool.bounds, divisors)
            return made
        made = _divided(wide(grad), _divisor(pool, count_include_pad, divisor_override))
        for i in range(spatial):
            axis = i - spatial
            shape = list(made.shape)
            shape[axis] = pool.padding[i] + pool.sizes[i] + max(pool.padding[i], pool.after[i])
            spread = np.zeros(shape, made.dtype)
            for tap in range(pool.kernel[i]):
                spread[_tap_key(axis, tap, pool.stride[i], pool.out[i])] += made
            made = spread
        inside = made[(..., *(slice(p, p + n) for p, n in zip(pool.padding, pool.sizes)))]
        return np.ascontiguousarray(inside).astype(grad.dtype, copy=False)

    return of_images(kernel, spatial, f"{op}_backward")
