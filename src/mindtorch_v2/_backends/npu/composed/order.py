"""Sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import INT64, NpuArray, contiguous, converted, filled, new, one_dim, reduced, viewed
from ..call import CALLS
from .places import cut
from .registry import composed
from .truth import is_nan, where


@composed("topk")
def topk(self: NpuArray, k: int, dim: int, largest: bool, sorted_: bool) -> tuple[NpuArray, NpuArray]:
    """The largest or smallest elements along a dimension."""
    dim = one_dim(self, dim)
    if self.ndim and not 0 <= k <= self.shape[dim]:
        raise RuntimeError("selected index k out of range")
    shape = tuple([k if d == dim else n for d, n in enumerate(self.shape)])
    values, indices = new(self, shape), new(self, shape, INT64)
    CALLS.Topk(self, k, dim, largest, sorted_, values, indices)
    return values, indices


@composed("sort.stable")
def sort_stable(self: NpuArray, stable: Any, dim: int, descending: bool) -> tuple[NpuArray, NpuArray]:
    """Sorted along a dimension."""
    values, indices = new(self, self.shape), new(self, self.shape, INT64)
    CALLS.Sort(self, bool(stable), one_dim(self, dim), descending, values, indices)
    return values, indices


@composed("sort")
def sort(self: NpuArray, dim: int, descending: bool) -> tuple[NpuArray, NpuArray]:
    """Sorted along a dimension."""
    return sort_stable(self, True, dim, descending)


@composed("kthvalue")
def kthvalue(self: NpuArray, k: int, dim: int, keepdim: bool) -> tuple[NpuArray, NpuArray]:
    """The element that is the k-th from below along a dimension."""
    dim = one_dim(self, dim)
    if not 1 <= k <= (self.shape[dim] if self.ndim else 1):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(dim))
    return _at(sort(self, dim, False), k - 1, dim, keepdim)


@composed("median.dim")
def median_along(self: NpuArray, dim: int, keepdim: bool) -> tuple[NpuArray, NpuArray]:
    """The middle element along a dimension, the lower of two; NaN if there is one."""
    dim = one_dim(self, dim)
    found = sort(self, dim, False)
    extent = self.shape[dim] if self.ndim else 1
    values, indices = _at(found, (extent - 1) // 2, dim, keepdim)
    if self.dtype.kind not in "fV":
        return values, indices
    # NaNs are at the end of sorted elements.
    none, first_none = is_nan(self), new(self, reduced(self, dim, keepdim).shape, INT64)
    marked = converted(none, np.dtype(np.int8))
    CALLS.ArgMax(marked, dim, keepdim, first_none)
    last, _ = _at(found, extent - 1, dim, keepdim)
    broken = is_nan(last)
    return where(broken, last, values), where(broken, first_none, indices)


@composed("median")
def median(self: NpuArray) -> NpuArray:
    """The middle one of all elements."""
    if not self.size:
        return filled((), self.dtype, self.memory.device.index, math.nan)
    return median_along(viewed(contiguous(self), (self.size,)), 0, False)[0]


def _at(found: tuple[NpuArray, NpuArray], place: int, dim: int, keepdim: bool) -> tuple[NpuArray, NpuArray]:
    values, indices = (contiguous(cut(one, dim, place, 1)) if one.ndim else one for one in found)
    shape = reduced(found[0], dim, keepdim).shape
    return viewed(values, shape), viewed(indices, shape)
