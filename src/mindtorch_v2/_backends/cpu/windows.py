"""Windows over the last dimensions: sizes, taps and sums; what pooling, resizing and unfolding share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

Array = Any
Sizes = tuple[int, ...]
WORDS = {1: "one int", 2: "two ints", 3: "three ints"}


def expand_sizes(values: Any, count: int, op: str, name: str) -> Sizes:
    """One number a dimension, from a number or a sequence."""
    sizes = (int(values),) if hasattr(values, "__index__") else tuple(int(v) for v in values)
    if len(sizes) == 1:
        return sizes * count
    if len(sizes) != count:
        raise RuntimeError(f"{op}: {name} must either be a single int, or a tuple of {WORDS[count]}")
    return sizes


def padded_copy(x: Array, before: Sizes, after: Sizes, value: Any) -> Array:
    """Margins around the last dimensions; without margins the array itself."""
    if not any(before) and not any(after):
        return x
    lead = x.ndim - len(before)
    sizes = x.shape[lead:]
    shape = (*x.shape[:lead], *(b + n + a for b, n, a in zip(before, sizes, after)))
    made = np.full(shape, value, x.dtype)
    made[(..., *(slice(b, b + n) for b, n in zip(before, sizes)))] = x
    return made


def taps(kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> Iterator[tuple[Sizes, tuple[Any, ...]]]:
    """Every window element with the key of what it sees in the padded array."""
    for tap in product(*map(range, kernel)):
        starts = [t * d for t, d in zip(tap, dilation)]
        yield tap, (..., *(slice(a, a + (o - 1) * s + 1, s) for a, o, s in zip(starts, out, stride)))


def along(axis: int, ndim: int, vector: Array) -> Array:
    """A vector shaped to broadcast along one axis (negative, from the end)."""
    return vector.reshape(-1, *(1,) * (-axis - 1))


def window_sum(x: Array, axis: int, starts: Array, ends: Array) -> Array:
    """Sums of `x[start:end]` along an axis (negative), for windows of any lengths."""
    size, count = x.shape[axis], len(starts)
    lengths = ends - starts
    longest = int(lengths.max()) if count else 0
    if count and size == count * longest and bool((lengths == longest).all()):
        split = (*x.shape[: x.ndim + axis], count, longest, *(x.shape[x.ndim + axis + 1:]))
        return x.reshape(split).sum(axis)
    shape = (*x.shape[: x.ndim + axis], count, *(x.shape[x.ndim + axis + 1:]))
    total = np.zeros(shape, x.dtype)
    for step in range(longest):
        inside = starts + step < ends
        part = np.take(x, np.minimum(starts + step, size - 1), axis)
        total += part if inside.all() else np.where(along(axis, x.ndim, inside), part, x.dtype.type(0))
    return total
