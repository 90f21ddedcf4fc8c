"""Kernels that take or place whole slices, flat positions and masked elements; and triangles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..._deterministic import alert
from ..._dispatch.dtype_rules import unsupported
from ..._dispatch.promotion import pretty, stored_scalar
from ..._dispatch.steps import step
from ..._dtype import FLOAT, FROM_NUMPY
from ..._shape import broadcast_shapes, wrap_dim
from ..index_checks import copied_dim
from . import providers
from .indexing import add_slices, chosen_by, contiguous, positions
from .memory import clone_step, zeros
from .scatter import (
    INDEX_DTYPES,
    REDUCERS,
    at_least_1d,
    check_range,
    divide_by_counts,
    identity,
    outside,
    scatter_add_step,
)
from .select import fill_where
from .view import diagonal, restrided

Array = Any
INT64 = np.dtype(np.int64)


def name_of(a: Array) -> str:
    """PyTorch's name of an array's dtype in error messages."""
    return pretty(FROM_NUMPY[a.dtype])


# -- slices along a dimension ----------------------------------------------------------------------------------------


@providers.direct("index_select")
def index_select(a: Array, dim: int, index: Array) -> Array:
    """The slices of a dimension that a vector names."""
    at = wrap_dim(dim, a.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in INDEX_DTYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not a.ndim:
        if index.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
        if int(index.reshape(())) != 0:
            raise IndexError("index out of range in self")
        return a.copy()
    if outside(index, a.shape[at]):
        if a.ndim == 1 or a.size:
            raise IndexError("index out of range in self")
        raise RuntimeError("index_select(): self indexing axis dim should be positive" if not a.shape[at] else
                           f"INDICES element is out of DATA bounds, axis_dim={a.shape[at]}")
    vector = index.reshape(-1)
    if not a.flags.c_contiguous:
        return contiguous(a[_key(at, vector)])
    # The slices are known to exist, so `take` need not check each.
    return a.take(vector, at, None, "clip")


def _key(dim: int, index: Array) -> tuple[Any, ...]:
    return (slice(None),) * dim + (index.reshape(-1),)


def _check_slices(name: str, a: Array, at: int, index: Array, source: Array) -> None:
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
                         f"{name_of(index)} and size: {list(index.shape)}")
    if index.dtype not in INDEX_DTYPES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {name_of(index)}")
    if a.dtype != source.dtype:
        raise RuntimeError(f"{name}(): self ({name_of(a)}) and source ({name_of(source)}) must have the same scalar "
                           "type")
    if a.ndim != source.ndim or a.shape[:at] + a.shape[at + 1:] != source.shape[:at] + source.shape[at + 1:]:
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. Got "
                           f"self.shape = {list(a.shape)} source.shape = {list(source.shape)}")
    if index.size != (source.shape[at] if source.ndim else 1):
        raise RuntimeError(f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): "
                           f"({source.shape[at] if source.ndim else 1}), for dim: {at}")


def index_add(a: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    """Add slices of `source` to the slices of `a` that a vector names."""
    at = wrap_dim(dim, a.ndim)
    _check_slices("index_add_", a, at, index, source)
    if alpha == 1 and index.dtype == INT64 and a.ndim > 1 and at in (0, a.ndim - 1) and index.size:
        # One index per element, the same for all elements of a slice.
        steps = [0] * a.ndim
        steps[at] = index.reshape(-1).strides[0]
        scatter_add_step(a, at, restrided(index, source.shape, steps), source)
        return a
    whole, added = at_least_1d(a), at_least_1d(source)
    if outside(index, whole.shape[at]):
        raise IndexError("index out of range in self")
    if alpha != 1:
        added = added * stored_scalar(alpha, added.dtype)
    add_slices(whole, at, index.reshape(-1), added)
    return a


def index_reduce(a: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool) -> Array:
    """Reduce slices of `source` into the slices of `a` that a vector names."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if a.ndim < 2 and a.dtype.kind in "bc":
        raise unsupported("index_func_", a.dtype)  # vectors have a kernel of their own
    if reduce.startswith("am") and a.dtype.kind == "c":
        raise unsupported("maximum_cpu" if reduce == "amax" else "minimum_cpu", a.dtype)
    if reduce == "mean" and a.dtype.kind == "b":
        raise unsupported("div_floor_cpu", a.dtype)
    at = wrap_dim(dim, a.ndim)
    _check_slices("index_reduce", a, at, index, source)
    whole, added = at_least_1d(a), at_least_1d(source)
    if outside(index, whole.shape[at]):
        raise IndexError("index out of range in self")
    rows, parts, vector = np.moveaxis(whole, at, 0), np.moveaxis(added, at, 0), index.reshape(-1)
    if not include_self:
        rows[vector] = np.asarray(identity(reduce, a.dtype)).astype(a.dtype)
    REDUCERS[reduce].at(rows, vector, parts)
    if reduce == "mean":
        counts = np.full(rows.shape[:1], int(include_self), np.int64)
        np.add.at(counts, vector, 1)
        divide_by_counts(rows, counts.reshape(counts.shape + (1,) * (rows.ndim - 1)))
    return a


def index_copy(a: Array, dim: int, index: Array, source: Array) -> Array:
    """Write slices of `source` into the slices of `a` that a vector names."""
    at = copied_dim(a, dim, index, source)
    whole, added = at_least_1d(a), at_least_1d(source)
    check_range(index, whole.shape[at], at, IndexError, "index_copy_(): ")
    whole[_key(at, index)] = added
    return a


def index_fill(a: Array, dim: int, index: Array, value: Any) -> Array:
    """Fill the slices that a vector names with a number or a 0-d array."""
    at = wrap_dim(dim, a.ndim)
    if index.dtype != INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value.ndim} dimension(s).")
        value = value.item() if value.dtype.kind != "V" else float(value)
    if isinstance(value, complex) and a.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    whole = at_least_1d(a)
    try:
        whole[_key(at, index)] = stored_scalar(value, a.dtype)
    except IndexError as error:
        raise IndexError(str(error).replace(" axis ", " dimension ")) from None
    return a


# -- flat positions --------------------------------------------------------------------------------------------------


def _check_flat(index: Array, size: int) -> None:
    if index.size:
        low, high = int(index.min()), int(index.max())
        if low < -size or high >= size:
            raise IndexError(f"out of range: tried to access index {high if high >= size else low} on a tensor of "
                             f"{size} elements.")


@providers.direct("take")
def take(a: Array, index: Array) -> Array:
    """Elements by their position in row-major order."""
    if index.dtype != INT64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {name_of(index)}")
    if index.size and not a.size:
        raise IndexError("take(): tried to take from an empty tensor")
    _check_flat(index, a.size)
    return a.reshape(-1).take(index) if a.size else np.empty(index.shape, a.dtype)


@providers.direct("put")
def put(a: Array, index: Array, source: Array, accumulate: bool) -> Array:
    """Write, or add, elements by their position in row-major order."""
    if not accumulate:
        alert("put_")
    if index.dtype != INT64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {name_of(index)}")
    if a.dtype != source.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{name_of(a)} and source.dtype = {name_of(source)}")
    if index.size != source.size:
        raise IndexError("put_(): Expected source and index to have the same number of elements, but got "
                         f"source.numel() = {source.size}, index.numel() = {index.size}")
    _check_flat(index, a.size)
    flat = a.reshape(-1)
    vector = index.reshape(-1)
    if accumulate:
        np.add.at(flat, np.where(vector < 0, vector + a.size, vector), source.reshape(-1))
    else:
        flat[vector] = source.reshape(-1)
    if not np.may_share_memory(flat, a):
        a[...] = flat.reshape(a.shape)
    return a


# -- masks -----------------------------------------------------------------------------------------------------------


@providers.direct("masked_fill_")
def masked_fill_inplace(a: Array, mask: Array, value: Any) -> Array:
    """Write a number, or a 0-d array, where a broadcast mask is set."""
    filled = _fill_value(a, mask, value)
    shape = broadcast_shapes(mask.shape, a.shape)
    if shape != a.shape:
        raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(shape)}")
    fill_where(a, mask, filled)
    return a


def _fill_value(a: Array, mask: Array, value: Any) -> Array:
    if mask.dtype != np.bool_:
        names = {"float32": "float", "float64": "double", "uint8": "unsigned char", "int64": "long int"}
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{names.get(mask.dtype.name, mask.dtype.name)}")
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value.ndim} dimension(s).")
        roomy = a.dtype.kind in "fVc" and (value.dtype.kind != "c" or a.dtype.kind == "c")
        if roomy or np.can_cast(value.dtype, a.dtype):
            return value.astype(a.dtype)
        value = value.item()
    return stored_scalar(value, a.dtype)


def masked_fill(a: Array, mask: Array, value: Any) -> Array:
    """A copy with a number where a mask is set; both broadcast."""
    filled = _fill_value(a, mask, value)
    if mask.shape != a.shape:
        broadcast_shapes(mask.shape, a.shape)
    if mask.shape != a.shape and broadcast_shapes(mask.shape, a.shape) != a.shape:
        return np.where(mask, filled, a)
    return masked_fill_step(clone_step(a), mask, filled)


@step("aten::masked_fill_", "Scalar")
def masked_fill_step(a: Array, mask: Array, value: Any) -> Array:
    """Write a value where a mask is set."""
    fill_where(a, mask, value)
    return a


def masked_select(a: Array, mask: Array) -> Array:
    """The elements where a mask is set, as a vector; both broadcast."""
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if mask.shape != a.shape:
        shape = broadcast_shapes(mask.shape, a.shape)
        a, mask = np.broadcast_to(a, shape), np.broadcast_to(mask, shape)
    return chosen_by(mask, a) if a.ndim else np.atleast_1d(a[mask])


def masked_scatter(a: Array, mask: Array, source: Array) -> Array:
    """Write the elements of `source`, in order, where a mask is set."""
    if a.dtype != source.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got "
                           f"{name_of(a)} and {name_of(source)}")
    if mask.dtype != np.bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {name_of(mask)}")
    shape = broadcast_shapes(mask.shape, a.shape)
    if shape != a.shape:
        raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(shape)}")
    mask = np.broadcast_to(mask, a.shape)
    count = int(np.count_nonzero(mask))
    if source.size < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    a[mask] = source.reshape(-1)[:count]
    return a


def nonzero(a: Array) -> Array:
    """The positions of all elements that are not 0, one row each."""
    if not a.ndim:
        return np.empty((int(bool(a)), 0), np.int64)
    return positions(a)


# -- triangles and diagonals -----------------------------------------------------------------------------------------


def triangle(name: str, a: Array, offset: int) -> Array:
    """The lower or upper triangle of matrices, zeros elsewhere."""
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    if a.flags.c_contiguous and providers.moves():
        made = np.empty(a.shape, a.dtype)
        providers.native.triangle(made, a, offset, name == "triu")
        return made
    rows, columns = a.shape[-2:]
    make = small_triangle if rows * columns <= SMALL else triangle_mask
    return np.ascontiguousarray(np.where(make(name, rows, columns, offset), a, np.zeros((), a.dtype)))


def triangle_mask(name: str, rows: int, columns: int, offset: int) -> Array:
    """Which elements of a matrix belong to a triangle."""
    lower = np.tri(rows, columns, offset if name == "tril" else offset - 1, dtype=np.bool_)
    return lower if name == "tril" else ~lower


# Masks of attention-sized matrices are requested again and again.
SMALL = 2**18
small_triangle = lru_cache(maxsize=16)(triangle_mask)


def triangle_indices(name: str, row: int, col: int, offset: int) -> Array:
    """Rows and columns of a triangle's elements."""
    for label, extent in (("row", row), ("col", col)):
        if extent < 0:
            raise RuntimeError(f"{label} must be non-negative, got{extent}")
    find = np.tril_indices if name == "tril" else np.triu_indices
    return np.stack(find(row, offset, col)).astype(np.int64)


def diag_embed(a: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Matrices with the last dimension of `a` on a diagonal."""
    ndim = a.ndim + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    extent = a.shape[-1] + abs(offset)
    shape = list(a.shape[:-1])
    for dim in sorted((first, second)):
        shape.insert(dim, extent)
    whole = zeros(tuple(shape), a.dtype)
    diagonal(whole, offset, first, second)[...] = a
    return whole


def trace(a: Array) -> Array:
    """The sum of a matrix's diagonal."""
    if a.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {a.ndim}")
    kind = FROM_NUMPY[a.dtype]
    if a.dtype == np.bool_:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    if kind.category >= FLOAT:
        wide = np.float32 if a.dtype.itemsize == 2 else a.dtype
        return np.diagonal(a).astype(wide).sum().astype(a.dtype)
    return np.diagonal(a).sum(dtype=np.int64)


def trace_backward(grad: Array, sizes: Sequence[int]) -> Array:
    """A 0-d gradient on the diagonal of zeros."""
    whole = np.zeros(sizes, grad.dtype)
    diagonal(whole, 0, 0, 1)[...] = grad
    return whole
