"""Sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES
from . import providers
from .reduce import along
from .scatter import INT64, TAKE
from .sort_keys import MANY, Keys, keys_of

Array = Any
# Below this extent a full sort is as fast as a partial one.
SMALL = 64
# The C kernels keep this many in order while they read a row.
MOST_KEPT = 64


def _keys(a: Array, axis: int, descending: bool) -> Keys | None:
    return keys_of(np.moveaxis(a, axis, -1), descending) if a.size >= MANY else None


def stable_order(a: Array, axis: int, descending: bool = False) -> Array:
    """The positions in sorted order; equal elements keep their order, NaN counts as the largest."""
    found = _keys(a, axis, descending)
    if found is not None:
        keys = found.keys
        keys.sort(-1)
        return np.moveaxis(found.positions(keys), -1, axis)
    if a.dtype in HALF_TYPES:
        a = a.astype(np.float32)
    if not descending:
        return np.argsort(a, axis, kind="stable")
    # Sorting the reversed array upwards and reversing again sorts downwards and keeps equal elements in order.
    order = np.flip(np.argsort(np.flip(a, axis), axis, kind="stable"), axis)
    return (a.shape[axis] - 1) - order


def first_places(a: Array, axis: int, count: int, descending: bool = False) -> Array:
    """The first `count` of `stable_order`, without sorting the others."""
    extent = a.shape[axis]
    if extent > SMALL and 0 < count * 4 <= extent:
        found = _keys(a, axis, descending)
        if found is not None:
            keys = found.keys
            keys.partition(count - 1, -1)
            return np.moveaxis(found.positions(np.sort(keys[..., :count], -1)), -1, axis)
    return stable_order(a, axis, descending)[(slice(None),) * axis + (slice(0, count),)]


def place_of_rank(a: Array, axis: int, rank: int) -> Array:
    """The place `rank` of `stable_order`, the dimension kept with one entry."""
    found = _keys(a, axis, False)
    if found is None:
        return stable_order(a, axis)[(slice(None),) * axis + (slice(rank, rank + 1),)]
    keys = found.keys
    keys.partition(rank, -1)
    return np.moveaxis(found.positions(keys[..., rank: rank + 1]), -1, axis)


def taken_along(a: Array, order: Array, axis: int) -> Array:
    """`np.take_along_axis`; along the last dimension of contiguous arrays as positions in a flat array."""
    if order.dtype == INT64 and order.size and providers.along(a, axis, order):
        made = np.empty(order.shape, a.dtype)
        providers.native.along(TAKE, a, np.ascontiguousarray(order), made, axis)
        return made
    if axis != a.ndim - 1 or not a.flags.c_contiguous or a.size < SMALL:
        return np.take_along_axis(a, order, axis)
    if a.ndim == 1:
        return a.take(order)
    starts = np.arange(0, a.size, a.shape[-1]).reshape(*a.shape[:-1], 1)
    return a.reshape(-1).take(order + starts)


def sort(a: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """Sorted elements and their original positions, with the array's memory layout."""
    if a.dtype.kind == "c":
        raise RuntimeError("Sort does not support complex dtypes on CPU")
    shape = a.shape
    whole, axis = along(a, dim)
    order = stable_order(whole, axis, bool(descending))
    values, order = taken_along(whole, order, axis).reshape(shape), order.reshape(shape)
    if len(shape) > 1 and (not a.flags.c_contiguous or not order.flags.c_contiguous):
        return _laid_like(a, values), _laid_like(a, order)
    return values, order


def _laid_like(a: Array, values: Array) -> Array:
    made = np.empty_like(a, values.dtype, "C" if 0 in a.strides else "K", subok=False)
    if made.strides == values.strides:
        return values
    made[...] = values
    return made


def sort_stable(a: Array, stable: bool | None, dim: int, descending: bool) -> tuple[Array, Array]:
    """`sort`, which is always stable here."""
    return sort(a, dim, descending)


@providers.direct("topk")
def topk(a: Array, k: int, dim: int, largest: bool, in_order: bool) -> tuple[Array, Array]:
    """The k largest or smallest elements, always returned in order."""
    if a.dtype.kind in "bc":
        raise RuntimeError(f"topk does not support {'bool' if a.dtype.kind == 'b' else 'complex'} dtypes on CPU")
    shape = a.shape
    a, axis = along(a, dim)
    if not 0 <= k <= a.shape[axis]:
        raise RuntimeError("selected index k out of range")
    if 0 < k <= MOST_KEPT and axis == a.ndim - 1 and providers.rows(a):
        values, order = np.empty((*a.shape[:-1], k), a.dtype), np.empty((*a.shape[:-1], k), np.int64)
        providers.native.top(values.reshape(-1, k), order.reshape(-1, k), a.reshape(-1, a.shape[-1]), largest)
        return values.reshape((*shape[:-1], k) if shape else ()), order.reshape((*shape[:-1], k) if shape else ())
    if k == 1 and largest and a.dtype.kind == "f":
        order = np.argmax(a, axis, keepdims=True)
    else:
        order = np.ascontiguousarray(first_places(a, axis, k, bool(largest)))
    values = np.ascontiguousarray(taken_along(a, order, axis))
    return (values, order) if shape else (values.reshape(()) if k else values, order.reshape(()) if k else order)
