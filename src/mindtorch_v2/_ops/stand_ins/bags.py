"""Sums, means and maxima of rows of a table, bag by bag."""

from __future__ import annotations

from typing import Any

from ..._backends.cpu.embedding_bag import MAX, MEAN, SUM
from ..._dispatch.namespace import aten
from ..._dtype import int32, int64
from ..._tensor import Tensor
from . import formula
from .groups import scatter_reduce
from .search import searchsorted


@formula("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
                  per_sample_weights: Tensor | None, include_last_offset: bool,
                  padding_idx: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result, the bag of every index, the size of every bag, and which row each maximum came from."""
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise ValueError("weights of samples have another type")  # the CPU's kernel explains it
    if mode not in (SUM, MEAN, MAX) or (include_last_offset and not offsets.shape[0]):
        raise ValueError("no such mode, or no offset")  # the CPU's kernel explains it
    if not {indices.dtype, offsets.dtype} <= {int32, int64}:
        raise ValueError("numbers of rows that are no integers of 32 or 64 bits")  # the CPU's kernel explains it
    if indices.dtype is not offsets.dtype:
        indices, offsets = indices.to(int64), offsets.to(int64)
    count = offsets.shape[0] - include_last_offset
    if not count:
        none = aten.zeros(0, dtype=indices.dtype, device=indices.device)
        return aten.zeros((0, weight.shape[1]), dtype=weight.dtype, device=weight.device), none, none, none
    starts = offsets.narrow(0, 0, count)
    numbers = aten.arange(indices.shape[0], dtype=offsets.dtype, device=indices.device)
    bag_of = searchsorted(starts, numbers, False, True, None, None) - 1
    counted = aten.ne(indices, padding_idx)  # a negative number is no row
    sizes = aten.zeros_like(starts, dtype=bag_of.dtype).index_add(0, bag_of, counted.to(bag_of.dtype))
    rows = aten.embedding(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    made = aten.zeros((count, weight.shape[1]), dtype=weight.dtype, device=weight.device)
    chosen = aten.zeros_like(starts, dtype=indices.dtype)
    if mode == MAX:
        made, chosen = _largest(made, rows, bag_of, indices, counted, sizes)
    else:
        made = made.index_add(0, bag_of, rows * counted.to(rows.dtype).unsqueeze(1))
    if mode == MEAN:
        made = made / sizes.clamp(min=1).to(made.dtype).unsqueeze(1)
    return made, bag_of.to(indices.dtype), sizes.to(indices.dtype), chosen


def _largest(made: Tensor, rows: Tensor, bag_of: Tensor, indices: Tensor, counted: Tensor,
             sizes: Tensor) -> tuple[Tensor, Tensor]:
    """The largest of each column of a bag, and the row of the table that the first of them came from."""
    wide = bag_of.unsqueeze(1).expand(rows.shape)
    rows = rows.masked_fill(aten.logical_not(counted).unsqueeze(1), -float("inf"))
    top = scatter_reduce(made, 0, wide, rows, "amax", False)
    numbers = aten.arange(rows.shape[0], device=rows.device).unsqueeze(1).expand(rows.shape)
    first = numbers.masked_fill(aten.ne(rows, top.gather(0, wide)), rows.shape[0])
    first = scatter_reduce(aten.zeros_like(made, dtype=numbers.dtype), 0, wide, first, "amin", False)
    first = first.clamp(max=max(rows.shape[0] - 1, 0))
    filled = (sizes > 0).unsqueeze(1)
    table_row = indices[first.reshape(-1)].reshape(first.shape) if rows.shape[0] else aten.zeros_like(first)
    return aten.where(filled, top, 0.0).to(made.dtype), aten.where(filled, table_row, 0).to(indices.dtype)


@formula("_embedding_bag_dense_backward")
def dense_backward(grad: Tensor, indices: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor,
                   num_weights: int, scale_grad_by_freq: bool, mode: int, per_sample_weights: Tensor | None,
                   padding_idx: int) -> Tensor:
    """The gradient of the table."""
    if mode == MAX:
        pulls = grad * (bag_size > 0).to(grad.dtype).unsqueeze(1)
        made = aten.zeros((num_weights, grad.shape[1]), dtype=grad.dtype, device=grad.device)
        return made.scatter_add(0, maximum_indices.long(), pulls)
    if mode == MEAN:
        grad = grad / bag_size.clamp(min=1).to(grad.dtype).unsqueeze(1)
    pulls = grad.index_select(0, offset2bag)
    if per_sample_weights is not None:
        pulls = pulls * per_sample_weights.unsqueeze(1)
    return aten.embedding_dense_backward(pulls, indices, num_weights, padding_idx, scale_grad_by_freq)


@formula("_embedding_bag_per_sample_weights_backward")
def per_sample_weights_backward(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Any, offset2bag: Tensor,
                                mode: int, padding_idx: int) -> Tensor:
    """The gradient of the factors of the rows."""
    made = (grad.index_select(0, offset2bag) * aten.embedding(weight, indices)).sum(1)
    return made.masked_fill(aten.eq(indices, padding_idx), 0)
