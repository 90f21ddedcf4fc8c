"""Sparse arrays in coordinates: parts, other shapes, sums over dimensions, and what two of them share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._shape import wrap_dim
from .sparse import COO, SparseArray, coalesce, compressed, transposed


def _coordinates(a: SparseArray, name: str) -> SparseArray:
    if a.layout != COO:
        raise NotImplementedError(f"aten::{name} of a tensor in compressed rows or columns is not supported by this "
                                  "runtime; use to_sparse_coo() or to_dense()")
    return a


def _made(rows: Sequence[np.ndarray], values: np.ndarray, shape: Sequence[int], coalesced: bool = False) -> SparseArray:
    indices = np.stack(rows).astype(np.int64, copy=False) if rows else np.empty((0, len(values)), np.int64)
    return SparseArray(indices, values, tuple(shape), coalesced)


def select(a: SparseArray, dim: int, index: int) -> Any:
    """What is at one position of a dimension; dense if that was the only sparse dimension."""
    a = _coordinates(a, "select")
    dim = wrap_dim(dim, a.ndim)
    if not -a.shape[dim] <= index < a.shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(a.shape)} at dimension {dim}")
    index = int(index) % a.shape[dim]
    shape = [n for d, n in enumerate(a.shape) if d != dim]
    count = len(a.indices)
    if dim >= count:
        return SparseArray(a.indices, a.values.take(index, dim - count + 1), tuple(shape), a.coalesced)
    found = a.indices[dim] == index
    if count == 1:
        return a.values[found].sum(0, dtype=a.dtype)
    return _made([row[found] for d, row in enumerate(a.indices) if d != dim], a.values[found], shape, a.coalesced)


def unbind(a: SparseArray, dim: int = 0) -> list[Any]:
    """What is at each position of a dimension."""
    dim = wrap_dim(dim, a.ndim)
    return [select(a, dim, index) for index in range(a.shape[dim])]


def index_select(a: SparseArray, dim: int, index: np.ndarray) -> SparseArray:
    """What is at several positions of a dimension, in the order given."""
    a = coalesce(_coordinates(a, "index_select"))
    dim = wrap_dim(dim, a.ndim)
    index = np.atleast_1d(index)
    if index.size and not (-a.shape[dim] <= index.min() and index.max() < a.shape[dim]):
        wrong = index[(index < -a.shape[dim]) | (index >= a.shape[dim])][0]
        raise IndexError(f"index_select(): index contains {wrong} that is out of range for tensor of size "
                         f"{list(a.shape)} at dimension {dim}")
    index = index % max(a.shape[dim], 1)
    shape = [len(index) if d == dim else n for d, n in enumerate(a.shape)]
    count = len(a.indices)
    if dim >= count:
        return SparseArray(a.indices, a.values.take(index, dim - count + 1), tuple(shape), True)
    order = np.argsort(a.indices[dim], kind="stable")
    sorted_places = a.indices[dim][order]
    first, last = (np.searchsorted(sorted_places, index, side) for side in ("left", "right"))
    counts = last - first
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    taken = order[within + np.repeat(first, counts)]
    rows = [np.repeat(np.arange(len(index)), counts) if d == dim else row[taken] for d, row in enumerate(a.indices)]
    return _made(rows, a.values[taken], shape, dim == 0)


def narrow(a: SparseArray, dim: int, start: int, length: int) -> SparseArray:
    """A range of positions of a dimension."""
    a = _coordinates(a, "narrow_copy")
    dim = wrap_dim(dim, a.ndim)
    end = start + length
    if start < 0 or length < 0 or end > a.shape[dim]:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, "
                           f"{a.shape[dim]}).")
    shape = [length if d == dim else n for d, n in enumerate(a.shape)]
    count = len(a.indices)
    if dim >= count:
        part = np.take(a.values, range(start, end), dim - count + 1)
        return SparseArray(a.indices, part, tuple(shape), a.coalesced)
    found = (a.indices[dim] >= start) & (a.indices[dim] < end)
    rows = [row[found] - (start if d == dim else 0) for d, row in enumerate(a.indices)]
    return _made(rows, a.values[found], shape, a.coalesced)


def unsqueeze(a: SparseArray, dim: int) -> SparseArray:
    """One more dimension, of one position."""
    a = _coordinates(a, "unsqueeze")
    dim = wrap_dim(dim, a.ndim + 1)
    shape = (*a.shape[:dim], 1, *a.shape[dim:])
    if dim > len(a.indices):
        return SparseArray(a.indices, np.expand_dims(a.values, dim - len(a.indices) + 1), shape, a.coalesced)
    return SparseArray(np.insert(a.indices, dim, 0, 0), a.values, shape, False)


def permute(a: SparseArray, dims: Sequence[int]) -> SparseArray:
    """Dimensions in another order; sparse ones stay before dense ones."""
    order = [wrap_dim(d, a.ndim) for d in dims]
    if len(order) != a.ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                           f"of the desired ordering of dimensions i.e. input.dim() = {a.ndim} is not equal to "
                           f"len(dims) = {len(order)}")
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if a.layout != COO:
        return transposed(a, 0, 1) if order == [1, 0] else a
    count = len(a.indices)
    if any(d >= count for d in order[:count]):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed."
                           "Only transpositions within sparse and dense dimensions are supported.")
    values = a.values.transpose(0, *(d - count + 1 for d in order[count:]))
    return SparseArray(a.indices[order[:count]], values, tuple(a.shape[d] for d in order),
                       a.coalesced and order[:count] == sorted(order[:count]))


def _alike(arrays: Sequence[Any], name: str, dim: int) -> None:
    first = arrays[0]
    for number, one in enumerate(arrays):
        if not isinstance(one, SparseArray):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {number}.")
        _coordinates(one, name)
        if len(one.indices) != len(first.indices) or one.ndim != first.ndim:
            raise RuntimeError("All tensors must have the same dimension. Different dimensions were found at position "
                               f"{number}: {one.ndim} and {first.ndim}")
        if any(n != m for d, (n, m) in enumerate(zip(one.shape, first.shape)) if d != dim):
            raise RuntimeError(f"All tensors must have the same shape: {list(first.shape)} (except in the "
                               f"concatenating dimension), but found shape: {list(one.shape)} at position {number}")


def cat(arrays: Sequence[Any], dim: int = 0) -> SparseArray:
    """Arrays one after the other along a dimension."""
    first = arrays[0]
    dim = wrap_dim(dim, first.ndim)
    _alike(arrays, "cat", dim)
    ends = np.cumsum([one.shape[dim] for one in arrays])
    shape = [int(ends[-1]) if d == dim else n for d, n in enumerate(first.shape)]
    count = len(first.indices)
    indices = [one.indices.copy() for one in arrays]
    values = [one.values for one in arrays]
    if dim < count:
        for places, end, one in zip(indices, ends, arrays):
            places[dim] += end - one.shape[dim]
    else:
        # Each array's values stand between zeros.
        at = dim - count + 1
        widths = [[(0, 0)] * v.ndim for v in values]
        for width, end, one in zip(widths, ends, arrays):
            width[at] = (int(end - one.shape[dim]), int(ends[-1] - end))
        values = [np.pad(v, width) for v, width in zip(values, widths)]
    return SparseArray(np.concatenate(indices, 1), np.concatenate(values), tuple(shape), False)


def stack(arrays: Sequence[Any], dim: int = 0) -> SparseArray:
    """Arrays one after the other along a new dimension."""
    dim = wrap_dim(dim, arrays[0].ndim + 1)
    _alike(arrays, "stack", -1)
    return cat([unsqueeze(one, dim) for one in arrays], dim)


def summed(a: SparseArray, dims: Sequence[int] | int | None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum over some dimensions: sparse, unless all sparse dimensions are summed."""
    a = coalesce(_coordinates(a, "sum"))
    if a.values.dtype.kind in "biu" and dtype is None:
        a = a.astype(np.int64)
    elif dtype is not None:
        a = a.astype(dtype.np)
    listed = (dims,) if isinstance(dims, (int, np.integer)) else dims
    over = sorted({wrap_dim(d, a.ndim) for d in listed}) if listed else list(range(a.ndim))
    count = len(a.indices)
    inner = tuple(d - count + 1 for d in over if d >= count)
    values = a.values.sum(inner, keepdims=keepdim) if inner else a.values
    shape = [1 if d in over else n for d, n in enumerate(a.shape) if keepdim or d not in over]
    kept = [d for d in range(count) if d not in over]
    if not kept:
        whole = values.sum(0)
        return whole.reshape(shape) if keepdim else whole
    if len(kept) == count:
        return SparseArray(a.indices, values, tuple(shape), True)
    rows = [np.zeros_like(a.indices[d]) if d in over else a.indices[d] for d in range(count) if keepdim or d in kept]
    return coalesce(_made(rows, values, shape))


def norm(a: SparseArray, p: Any, dims: Sequence[int], keepdim: bool) -> Any:
    """The norm of all elements."""
    if dims and sorted(wrap_dim(d, a.ndim) for d in dims) != list(range(a.ndim)):
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
                           "contain all dimensions of the input")
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    values = np.abs(coalesce(a).values.reshape(-1))
    if not values.size:
        return values.dtype.type(0)
    return np.linalg.norm(values, 2 if p is None else p).astype(values.dtype)


def common(a: SparseArray, b: SparseArray) -> SparseArray:
    """The products of the elements at positions that both arrays have."""
    if a.shape != b.shape:
        raise RuntimeError(f"mul operands have incompatible sizes: {list(a.shape)} and {list(b.shape)}")
    if a.layout != COO or b.layout != COO:
        return compressed(common(compressed(a, COO), compressed(b, COO)), a.layout)
    if len(a.indices) != len(b.indices):
        raise NotImplementedError("products of sparse tensors with different numbers of sparse dimensions are not "
                                  "supported; use to_dense()")
    a, b = coalesce(a), coalesce(b)
    extents = a.shape[:len(a.indices)]
    if not math.prod(extents):
        return a
    flat = [np.ravel_multi_index(tuple(one.indices), extents) for one in (a, b)]
    _, left, right = np.intersect1d(*flat, assume_unique=True, return_indices=True)
    return SparseArray(a.indices[:, left], a.values[left] * b.values[right], a.shape, True)


def at_places(a: SparseArray, mask: Any) -> SparseArray:
    """The elements at the positions of another sparse array, zero where there is none."""
    if not isinstance(mask, SparseArray):
        raise RuntimeError("sparse_mask(): expected mask to be sparse")
    if a.shape != mask.shape:
        raise RuntimeError("sparse_mask(): operands have incompatible sizes; self has size "
                           f"{list(a.shape)} but mask has size {list(mask.shape)}")
    if len(a.indices) != len(mask.indices):
        raise NotImplementedError("sparse_mask() of tensors with different numbers of sparse dimensions is not "
                                  "supported; use to_dense()")
    given = coalesce(compressed(a, COO))
    extents = a.shape[:len(a.indices)]
    values = np.zeros((mask.indices.shape[1], *a.values.shape[1:]), a.dtype)
    if given.indices.shape[1]:
        have, wanted = (np.ravel_multi_index(tuple(one.indices), extents) for one in (given, mask))
        at = np.minimum(np.searchsorted(have, wanted), len(have) - 1)
        found = have[at] == wanted
        values[found] = given.values[at[found]]
    return SparseArray(mask.indices, values, mask.shape, mask.coalesced, mask.layout)
