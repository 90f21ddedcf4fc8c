"""Sorting."""

from __future__ import annotations

from typing import Any

from ..arrays import INT64, NpuArray, new, one_dim
from ..call import CALLS
from .registry import composed


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
