"""Fractional max pooling: windows at random but evenly spread positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
NAMES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _starts(samples: Array, size: int, count: int, window: int) -> Array:
    """First positions of the windows for each plane: (planes, count)."""
    last = np.full((*samples.shape, 1), size - window, np.int64)
    if count == 1:
        return last
    step = samples.dtype.type(size - window) / samples.dtype.type(count - 1)
    numbers = np.arange(count - 1).astype(samples.dtype)
    first = ((numbers + samples[..., None]) * step).astype(np.int64)
    first = first - (samples[..., None] * step).astype(np.int64)
    return np.concatenate([first, last], -1)


def _geometry(x: Array, kernel: Any, output: Any, samples: Array, spatial: int) -> Array:
    """Flat positions of every window's elements: (planes, *output, window elements)."""
    sizes = x.shape[-spatial:]
    planes = int(np.prod(x.shape[:-spatial]))
    flat = samples.reshape(samples.size // spatial, spatial)[:planes]
    total: Array = 0
    for d, (size, window, count) in enumerate(zip(sizes, kernel, output, strict=True)):
        # For images the first number belongs to the width, for volumes to the first dimension.
        number = spatial - 1 - d if spatial == 2 else d
        starts = _starts(flat[:, number], size, count, window)
        places = starts[:, :, None] + np.arange(window)
        shape = [planes] + [1] * (2 * spatial)
        shape[1 + d], shape[1 + spatial + d] = count, window
        total = total * size + places.reshape(shape)
    return total.reshape(planes, *output, math.prod(kernel))


def fractional_max_pool(spatial: int) -> Any:
    """The kernel for images or volumes."""
    name = f"fractional_max_pool{spatial}d"

    def pool(x: Array, kernel: Any, output: Any, samples: Array) -> tuple[Array, Array]:
        if 0 in x.shape[1:]:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got "
                               f"{list(x.shape)}")
        if x.ndim not in (spatial + 1, spatial + 2):
            raise RuntimeError(f"{name}(): Expected {spatial + 1}D or {spatial + 2}D tensor, but got {list(x.shape)}")
        for label, size, window, count in zip(NAMES[spatial], x.shape[-spatial:], kernel, output, strict=True):
            if count + window - 1 > size:
                raise RuntimeError(f"{name}(): pool {label} {window} too large relative to input {label} {size}")
        if samples.dtype != x.dtype:
            raise RuntimeError("Expect _random_samples to have the same dtype as input")
        batch, planes = (1, *x.shape[:1]) if x.ndim == spatial + 1 else x.shape[:2]
        if samples.ndim != 3:
            raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
        if samples.shape[0] < batch:
            raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
        if samples.shape[1] != planes:
            raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
        if samples.shape[2] != spatial:
            raise RuntimeError(f"Expect _random_samples.size(2) equals to {spatial}; got {samples.shape[2]}.")
        if 0 in output:
            nothing = (*x.shape[:-spatial], *output)
            return np.empty(nothing, x.dtype), np.empty(nothing, np.int64)
        places = _geometry(x, kernel, output, samples, spatial)
        flat = x.reshape(places.shape[0], math.prod(x.shape[-spatial:]))
        rows = np.arange(places.shape[0]).reshape(-1, *[1] * (places.ndim - 1))
        values = flat[rows, places]
        best = np.argmax(values, -1)[..., None]
        shape = (*x.shape[:-spatial], *output)
        return (np.take_along_axis(values, best, -1).reshape(shape),
                np.take_along_axis(places, best, -1).reshape(shape))

    return pool


def fractional_max_pool_backward(spatial: int) -> Any:
    """The gradient's kernel for images or volumes."""

    def backward(grad: Array, x: Array, kernel: Any, output: Any, indices: Array) -> Array:
        planes = int(np.prod(x.shape[:-spatial]))
        area = int(np.prod(x.shape[-spatial:]))
        flat = indices.reshape(planes, math.prod(output)) + np.arange(planes)[:, None] * area
        made = np.bincount(flat.reshape(-1), grad.reshape(-1).astype(np.float64), planes * area)
        return made.reshape(x.shape).astype(x.dtype)

    return backward
