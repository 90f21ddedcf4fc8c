"""Sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES
from .reduce import along

Array = Any
# Below this extent a full sort is as fast as a partial one.
SMALL = 64


def stable_order(a: Array, axis: int, descending: bool = False) -> Array:
    """The positions in sorted order; equal elements keep their order, NaN counts as the largest."""
    if a.dtype in HALF_TYPES:
        a = a.astype(np.float32)
    if not descending:
        return np.argsort(a, axis, kind="stable")
    # Sorting the reversed array upwards and reversing again sorts downwards and keeps equal elements in order.
    order = np.flip(np.argsort(np.flip(a, axis), axis, kind="stable"), axis)
    return (a.shape[axis] - 1) - order


def sort(a: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """Sorted elements and where they came from."""
    if a.dtype.kind == "c":
        raise RuntimeError("Sort does not support complex dtypes on CPU")
    shape = a.shape
    a, axis = along(a, dim)
    order = stable_order(a, axis, bool(descending))
    return np.take_along_axis(a, order, axis).reshape(shape), order.reshape(shape)


def sort_stable(a: Array, stable: bool | None, dim: int, descending: bool) -> tuple[Array, Array]:
    """`sort`, which is always stable here."""
    return sort(a, dim, descending)


def topk(a: Array, k: int, dim: int, largest: bool, in_order: bool) -> tuple[Array, Array]:
    """The k largest or smallest elements, always returned in order."""
    if a.dtype.kind in "bc":
        raise RuntimeError(f"topk does not support {'bool' if a.dtype.kind == 'b' else 'complex'} dtypes on CPU")
    shape = a.shape
    a, axis = along(a, dim)
    count = a.shape[axis]
    if not 0 <= k <= count:
        raise RuntimeError("selected index k out of range")
    keys = a.astype(np.float32) if a.dtype in HALF_TYPES else a
    window = [slice(None)] * a.ndim
    if count <= SMALL or k * 4 > count or k == 0:
        window[axis] = slice(0, k)
        order = stable_order(keys, axis, largest)[tuple(window)]
    else:
        window[axis] = slice(count - k, None) if largest else slice(0, k)
        chosen = np.argpartition(keys, count - k if largest else k - 1, axis)[tuple(window)]
        # In position order first, so that the stable sort breaks ties by position.
        chosen = np.sort(chosen, axis)
        inner = stable_order(np.take_along_axis(keys, chosen, axis), axis, largest)
        order = np.take_along_axis(chosen, inner, axis)
    values = np.take_along_axis(a, order, axis)
    return (values, order) if shape else (values.reshape(()) if k else values, order.reshape(()) if k else order)
