"""Maxima of windows with the number of the element that each came from, one dimension at a time.

Elements of a window are numbered in row-major order, and the last dimension is reduced first. So anything that a later
step along a dimension adds has a higher number than everything before it. Choosing a number is then a product with "is
larger" and a maximum: small integers without a branch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any
Sizes = tuple[int, ...]


def numbers_type(kernel: Sizes) -> type:
    """The smallest unsigned type that can number a window's elements."""
    count = math.prod(kernel)
    return np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32


def padded_rows(x: Array, before: Sizes, after: Sizes, value: Any, step: int,
                reach: int) -> tuple[Array, Sizes]:
    """A flat copy with margins, and its shape: row lengths are a multiple of `step`, and `reach` elements follow."""
    lead = x.ndim - len(before)
    sizes = [b + n + a for b, n, a in zip(before, x.shape[lead:], after)]
    sizes[-1] += -sizes[-1] % step
    shape = (*x.shape[:lead], *sizes)
    memory = np.full(math.prod(shape) + reach, value, x.dtype)
    inside = tuple(slice(b, b + n) for b, n in zip(before, x.shape[lead:]))
    memory[: math.prod(shape)].reshape(shape)[(..., *inside)] = x
    return memory, shape


def _choose(views: list[Array], numbers: list[Array] | None, radix: int, kind: type) -> tuple[Array, Array]:
    """The largest of some arrays, element by element, the first of equals, and its number."""
    best = views[0].copy()
    chosen = np.zeros(best.shape, kind) if numbers is None else numbers[0].copy()
    for step, view in enumerate(views[1:], start=1):
        larger = np.greater(view, best).view(np.uint8)
        np.maximum(best, view, out=best)
        candidate = np.add(numbers[step], kind(step * radix)) if numbers is not None else kind(step * radix)
        np.maximum(chosen, np.multiply(larger, candidate, dtype=kind), out=chosen)
    return best, chosen


def window_maxima(x: Array, kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes, before: Sizes, after: Sizes,
                  lowest: Any) -> tuple[Array, Array]:
    """Maxima of all windows of the last dimensions, and the numbers of the elements; NaN makes the numbers wrong."""
    kind = numbers_type(kernel)
    step, reach = stride[-1], dilation[-1] * (kernel[-1] - 1)
    if any(before) or any(after) or x.shape[-1] % step or reach >= step or not x.flags.c_contiguous:
        flat, shape = padded_rows(x, before, after, lowest, step, reach)
    else:
        flat, shape = x.reshape(-1), x.shape
    count = math.prod(shape) // step
    # Row lengths are a multiple of the stride, so that one strided run passes over all of them.
    starts = [t * dilation[-1] for t in range(kernel[-1])]
    best, chosen = _choose([flat[a: a + (count - 1) * step + 1: step] for a in starts], None, 1, kind)
    pitched = (*shape[:-1], shape[-1] // step)
    best, chosen = best.reshape(pitched), chosen.reshape(pitched)
    radix = kernel[-1]
    for axis in range(len(kernel) - 2, -1, -1):
        inner = (slice(None),) * (len(kernel) - 1 - axis)
        keys = [(..., slice(t * dilation[axis], t * dilation[axis] + (out[axis] - 1) * stride[axis] + 1, stride[axis]),
                 *inner) for t in range(kernel[axis])]
        best, chosen = _choose([best[key] for key in keys], [chosen[key] for key in keys], radix, kind)
        radix *= kernel[axis]
    if best.shape[-1] != out[-1]:
        best, chosen = np.ascontiguousarray(best[..., : out[-1]]), chosen[..., : out[-1]]
    return best, chosen
