"""Looking up rows of a table, and the sums of its gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dispatch.promotion import pretty
from ..._dispatch.steps import step
from ..._dtype import FROM_NUMPY, HALF_TYPES
from . import providers
from .memory import zeros
from .stretches import sum_stretches
from .view import view_step

Array = Any


def _check_indices(indices: Array, rows: int) -> None:
    if indices.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{pretty(FROM_NUMPY[indices.dtype])}Tensor instead (while checking arguments for embedding)"
        )
    # Read as unsigned, negative indices are large, so one comparison finds both kinds of wrong indices.
    if indices.size and np.ascontiguousarray(indices).view(f"u{indices.dtype.itemsize}").max() >= rows:
        raise IndexError("index out of range in self")


def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Array:
    """The rows of `weight` at `indices`."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices, weight.shape[0])
    rows = indices if indices.ndim == 1 else _reshape(indices, (-1,))
    made = _index_select(weight, 0, rows)
    return made if indices.ndim == 1 else view_step(made, (*indices.shape, weight.shape[1]))


@step("aten::reshape")
def _reshape(indices: Array, shape: tuple[int, ...]) -> Array:
    return view_step(np.ascontiguousarray(indices), shape)


@step("aten::index_select")
@providers.direct("index_select")
def _index_select(weight: Array, dim: int, rows: Array) -> Array:
    # The rows are known to exist, so `take` need not check each.
    return weight.take(rows, dim, None, "clip")


def embedding_backward(grad: Array, indices: Array, num_weights: int, padding_idx: int,
                       scale_grad_by_freq: bool) -> Array:
    """Sum of the gradients of each row's occurrences: sorted by row, then equal neighbours are added up."""
    width = grad.shape[-1]
    made = zeros((num_weights, width), grad.dtype)
    flat, pulls = indices.reshape(-1), view_step(np.ascontiguousarray(grad), (-1, width))
    if not scale_grad_by_freq and pulls.size and providers.rows(pulls, made):
        places = np.ascontiguousarray(flat, np.int64)
        providers.native.add_rows(made, places if padding_idx < 0 else np.where(flat == padding_idx, -1, places), pulls)
        return made
    if padding_idx >= 0:
        counted = flat != padding_idx
        flat, pulls = flat[counted], pulls[counted]
    if not flat.size or not width:
        return made
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    wide = pulls[order].astype(np.float32) if grad.dtype in HALF_TYPES else pulls[order]
    sums = sum_stretches(wide, starts)
    if scale_grad_by_freq:
        sums = sums / np.diff(np.append(starts, flat.size))[:, None].astype(sums.dtype)
    made[ordered[starts]] = sums
    return made


def embedding_renorm(weight: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    """Shrink, in place, the rows at `indices` that are longer than `max_norm`."""
    _check_indices(indices, weight.shape[0])
    used = np.unique(indices)
    rows = weight[used]
    lengths = vector_norm(rows, norm_type)
    long = lengths > max_norm
    # PyTorch's protection against division by zero is part of the result.
    weight[used[long]] = (rows[long] * (max_norm / (lengths[long] + 1e-7))[:, None]).astype(weight.dtype)
    return weight


def vector_norm(rows: Array, p: float) -> Array:
    """The p-norm of each row."""
    if rows.dtype.kind in "biu":
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{pretty(FROM_NUMPY[rows.dtype])} instead.")
    size = np.abs(rows if rows.dtype.kind == "c" else rows.astype(np.float64))
    if math.isinf(p):
        return size.max(-1)
    if p == 0:
        return np.count_nonzero(size, -1).astype(size.dtype)
    return np.power(np.power(size, p).sum(-1), 1 / p)
