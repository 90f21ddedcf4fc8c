"""Forms of ops that PyTorch's compiler and its sharded parameters use, made of the ops that programs use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._dtype import bool_, uint8
from .._shape import wrap_dim
from .._tensor import Tensor
from .indexing import Indices

# -- indexing where a mask says so; indices may be out of bounds where it does not -----------------------------------


def _within(self: Tensor, indices: Sequence[Tensor | None]) -> Indices:
    """Indices that are in bounds."""
    return Indices([None if index is None else aten.clamp(index, -size, size - 1)
                    for index, size in zip(indices, self._a.shape)])


def _left_out(mask: Tensor) -> Tensor:
    return aten.logical_not(mask if mask.dtype is bool_ else aten.ne(mask, 0))


def _unsafe_masked_index(self: Tensor, mask: Tensor, indices: Any, fill: Any) -> Tensor:
    if not self._a.size:
        return aten.new_full(self, mask._a.shape, fill)
    return aten.masked_fill(aten.index__Tensor(self, _within(self, indices)), _left_out(mask), fill)


def _unsafe_masked_index_put_accumulate(self: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    if not self._a.size:
        return aten.clone(self)
    return aten.index_put(self, _within(self, indices), aten.masked_fill(values, _left_out(mask), 0), True)


declare("_unsafe_masked_index(Tensor self, Tensor mask, Any indices, Scalar fill) -> Tensor", where="f",
        composite=_unsafe_masked_index)
declare("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Any indices, Tensor values) -> Tensor",
        where="f", composite=_unsafe_masked_index_put_accumulate)

# -- chunks of several tensors beside each other ---------------------------------------------------------------------


def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    shapes = [t._a.shape for t in tensors]
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not shapes:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if not all(t._a.size for t in tensors):
        raise RuntimeError("_chunk_cat expects non-empty tensor")
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
    if dim < 0 and len({len(shape) for shape in shapes}) > 1:
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    if dim >= min(map(len, shapes)):
        raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
    at = wrap_dim(dim, len(shapes[0]))
    if len({shape[:at] for shape in shapes}) > 1:
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return aten.cat([_chunks(tensor, at, num_chunks) for tensor in tensors], at + 1)


def _chunks(tensor: Tensor, dim: int, count: int) -> Tensor:
    """A tensor's chunks along a dimension, each flat; zeros make them equally long."""
    shape = tensor._a.shape
    missing = -shape[dim] % count
    padded = aten.constant_pad_nd(tensor, (*(0, 0) * (len(shape) - dim - 1), 0, missing), 0) if missing else tensor
    size = (shape[dim] + missing) // count * math.prod(shape[dim + 1:])
    return aten.reshape(padded, (*shape[:dim], count, size))


declare("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", where="f", composite=_chunk_cat)

# -- batch normalization with a reserve for a device's backward ------------------------------------------------------


def _batch_norm_with_update(input: Tensor, weight: Any, bias: Any, running_mean: Tensor, running_var: Tensor,
                            momentum: float, eps: float) -> tuple[Tensor, ...]:
    made = aten.native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*made, aten.empty((0,), dtype=uint8, device=input.device))


declare("_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
        "Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)", where="n",
        composite=_batch_norm_with_update)
