"""Sums, means and maxima of rows of a table, bag by bag. The indices of a bag are adjacent."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES, pretty
from ..._dtype import FROM_NUMPY, HALF_TYPES
from .embedding import embedding_backward
from .stretches import sum_stretches

Array = Any

SUM, MEAN, MAX = range(3)


def _kind(a: Array) -> str:
    return f"torch.{pretty(FROM_NUMPY[a.dtype])}Tensor"


def _check(weight: Array, indices: Array, offsets: Array, mode: int, per_sample_weights: Array | None) -> None:
    for name, a, most in (("input", indices, 2), ("offsets", offsets, 1)):
        if not 1 <= a.ndim <= most:
            raise RuntimeError(f"{name} has to be a {'1D or 2D' if most == 2 else '1D'} Tensor, but got Tensor of "
                               f"dimension {a.ndim}")
    if weight.ndim != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    for name, a in (("indices", indices), ("offsets", offsets)):
        if a.dtype not in (np.int64, np.int32):
            raise RuntimeError(f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: "
                               f"Long, Int; but got {_kind(a)} instead (while checking arguments for embedding_bag)")
    if weight.dtype not in FLOAT_DTYPES:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, "
                           f"BFloat16, Float, Double; but got {_kind(weight)} instead (while checking arguments for "
                           "embedding_bag)")
    if per_sample_weights is not None and mode != SUM:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    if per_sample_weights is not None and per_sample_weights.shape != (indices.size,):
        raise RuntimeError(f"embedding_bag: expected one per_sample_weights for each of {indices.size} indices, in one "
                           f"dimension, but got a tensor of shape {list(per_sample_weights.shape)}")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                           f"'per_sample_weights'; but type {_kind(weight)} does not equal {_kind(per_sample_weights)} "
                           "(while checking arguments for embedding_bag)")
    if offsets.size and offsets[0] != 0:
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
                           f"position 0. However, got {offsets[0]}")
    if (offsets[1:] < offsets[:-1]).any():
        raise RuntimeError("Expected offsets that never become smaller, since the indices of a bag are neighbours, but "
                           f"got {offsets.tolist()}")
    if offsets.size and offsets[-1] > indices.size:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length {indices.size} but got offsets[-1] of "
                           f"{offsets[-1]}")
    stray = np.flatnonzero((indices < 0) | (indices >= len(weight)))
    if stray.size:
        raise RuntimeError(f"Index {stray[0]} of input takes value {indices.flat[stray[0]]} which is not in the valid "
                           f"range [0, {len(weight)})")


def _starts(bags: Array) -> Array:
    """Where a new bag begins, in a sorted list of bag numbers."""
    return np.flatnonzero(np.concatenate(([True], bags[1:] != bags[:-1]))) if bags.size else np.empty(0, np.int64)


def embedding_bag(weight: Array, indices: Array, offsets: Array, scale_grad_by_freq: bool, mode: int, sparse: bool,
                  per_sample_weights: Array | None, include_last_offset: bool,
                  padding_idx: int) -> tuple[Array, Array, Array, Array]:
    """`(result, bag of every index, size of every bag, which row each maximum came from)`."""
    if mode not in (SUM, MEAN, MAX):
        raise RuntimeError("`mode` must be sum, mean, or max: 0, 1 or 2")
    _check(weight, indices, offsets, mode, per_sample_weights)
    kind = np.promote_types(indices.dtype, offsets.dtype)
    indices = indices.reshape(-1).astype(kind, copy=False)
    if include_last_offset and not len(offsets):
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    count = len(offsets) - include_last_offset
    if not count:
        none = np.empty(0, indices.dtype)
        return np.empty((0, weight.shape[1]), weight.dtype), none, none, none
    bag_of = np.searchsorted(offsets[:count], np.arange(indices.size), side="right") - 1
    counted = np.flatnonzero(indices != padding_idx) if padding_idx >= 0 else np.arange(indices.size)
    bags, used = bag_of[counted], indices[counted]
    rows = weight[used]
    if weight.dtype in HALF_TYPES:
        rows = rows.astype(np.float32)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[counted][:, None].astype(rows.dtype)
    made = np.zeros((count, weight.shape[1]), rows.dtype)
    sizes = np.bincount(bags, minlength=count)
    chosen = np.zeros(made.shape if mode == MAX else count, indices.dtype)
    starts = _starts(bags)
    if starts.size and made.size:
        filled = bags[starts]
        if mode == MAX:
            made[filled] = np.maximum.reduceat(rows, starts, 0)
            first = np.where(rows == made[bags], np.arange(len(rows))[:, None], len(rows) - 1)
            chosen[filled] = used[np.minimum.reduceat(first, starts, 0)]
        else:
            made[filled] = sum_stretches(rows, starts)
    if mode == MEAN:
        made /= np.maximum(sizes, 1)[:, None].astype(made.dtype)
    return made.astype(weight.dtype, copy=False), bag_of.astype(indices.dtype), sizes.astype(indices.dtype), chosen


def dense_backward(grad: Array, indices: Array, offset2bag: Array, bag_size: Array, maximum_indices: Array,
                   num_weights: int, scale_grad_by_freq: bool, mode: int, per_sample_weights: Array | None,
                   padding_idx: int) -> Array:
    """Gradient of the table."""
    if mode == MAX:
        made = np.zeros((num_weights, grad.shape[1]), grad.dtype)
        filled = np.flatnonzero(bag_size)
        np.add.at(made, (maximum_indices[filled], np.arange(grad.shape[1])), grad[filled])
        return made
    if mode == MEAN:
        grad = grad / np.maximum(bag_size, 1)[:, None].astype(grad.dtype)
    pulls = grad[offset2bag]
    if per_sample_weights is not None:
        pulls = pulls * per_sample_weights[:, None]
    return embedding_backward(pulls, indices, num_weights, padding_idx, scale_grad_by_freq)


def per_sample_weights_backward(grad: Array, weight: Array, indices: Array, offsets: Array, offset2bag: Array,
                                mode: int, padding_idx: int) -> Array:
    """Gradient of the factors of the rows."""
    kind = grad.dtype
    if weight.dtype in HALF_TYPES:
        grad, weight = grad.astype(np.float32), weight.astype(np.float32)
    made = np.einsum("ij,ij->i", grad[offset2bag], weight[indices])
    if padding_idx >= 0:
        made[indices == padding_idx] = 0
    return made.astype(kind, copy=False)
