"""Sparse arrays: the positions of some elements and their values; all others are zero.

Compressed rows and columns are also kept as coordinates, in the order of their layout. The compressed form is computed
on demand, and every kernel for coordinates works for them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._device import CPU
from .._dtype import FROM_NUMPY, cpp_name
from .cpu.stretches import sum_stretches

Array = Any
COO, CSR, CSC = "sparse_coo", "sparse_csr", "sparse_csc"
# The dimension that a layout compresses.
COMPRESSED = {CSR: 0, CSC: 1}


class SparseArray:
    """Indices of shape (sparse dimensions, count) and values of shape (count, dense dimensions...)."""

    __slots__ = ("__weakref__", "coalesced", "indices", "layout", "shape", "values")
    device = CPU
    data_ptr = 0

    def __init__(self, indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...], coalesced: bool,
                 layout: str = COO) -> None:
        self.indices = indices
        self.values = values
        self.shape = shape
        self.coalesced = coalesced
        self.layout = layout

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.indices.nbytes + self.values.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """None: elements are not at regular distances."""
        return ()

    @property
    def flags(self) -> Any:
        return self.values.flags

    def astype(self, dtype: Any, copy: bool = True) -> SparseArray:
        """The same positions with values in another dtype."""
        return self.like(self.values.astype(dtype, copy=copy))

    def copy(self) -> SparseArray:
        """Independent memory."""
        return SparseArray(self.indices.copy(), self.values.copy(), self.shape, self.coalesced, self.layout)

    def like(self, values: np.ndarray) -> SparseArray:
        """Other values at the same positions."""
        return SparseArray(self.indices, values, self.shape, self.coalesced, self.layout)

    def without_elements(self, dtype: np.dtype) -> SparseArray:
        """Nothing but zeros, of the same shape."""
        values = np.empty((0, *self.values.shape[1:]), dtype)
        return SparseArray(self.indices[:, :0].copy(), values, self.shape, True, self.layout)

    def take_over(self, other: SparseArray) -> SparseArray:
        """Take another's elements instead of its own: the result of an in-place op."""
        self.indices, self.values, self.shape, self.coalesced, self.layout = (
            other.indices, other.values, other.shape, other.coalesced, other.layout)
        return self

    def after(self, left: np.ndarray) -> np.ndarray:
        """A dense matrix times this one."""
        return np.ascontiguousarray(product(transposed(self), left.T).T)

    def __rmul__(self, other: Any) -> Any:
        raise NotImplementedError("a dense tensor times a sparse one is not supported by this runtime: use "
                                  "torch.sparse.mm, or to_dense()")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Called if a dense array is the first operand: a sum with a dense array is dense."""
        if ufunc is np.add and method == "__call__" and len(inputs) == 2:
            if isinstance(inputs[1], SparseArray) and options.get("out") == (inputs[0],):
                return add_into(inputs[0], inputs[1])
            return np.add(*[dense(one) if isinstance(one, SparseArray) else one for one in inputs], **options)
        if ufunc is np.multiply and inputs[1] is self and isinstance(inputs[0], np.ndarray) and (
                len(self.indices) == self.ndim):
            return self.like(np.broadcast_to(inputs[0], self.shape)[tuple(self.indices)] * self.values)
        if ufunc is np.multiply and inputs[0] is self and np.ndim(inputs[1]) == 0:
            return self.like(self.values * inputs[1])
        raise NotImplementedError(f"{ufunc.__name__} of a dense and a sparse tensor is not supported by this runtime; "
                                  "use to_dense()")


def dense(a: SparseArray) -> np.ndarray:
    """All elements; elements that are given several times are added up."""
    made = np.zeros(a.shape, a.dtype)
    count = len(a.indices)
    flat = made.reshape(math.prod(a.shape[:count]), *a.shape[count:])
    np.add.at(flat, np.ravel_multi_index(tuple(a.indices), a.shape[:count]) if count else np.zeros(
        len(a.values), np.int64), a.values)
    return made


def add_into(target: np.ndarray, a: SparseArray) -> np.ndarray:
    """The elements of a sparse array added to a dense one, in place."""
    a = coalesce(a)
    target[tuple(a.indices)] += a.values
    return target


def masked(a: np.ndarray, mask: Any) -> SparseArray:
    """The elements of a dense array at the positions of a sparse one."""
    if not isinstance(mask, SparseArray):
        raise RuntimeError("sparse_mask(): expected mask to be sparse")
    if a.shape != mask.shape:
        raise RuntimeError("sparse_mask(): operands have incompatible sizes; self has size "
                           f"{list(a.shape)} but mask has size {list(mask.shape)}")
    return SparseArray(mask.indices, a[tuple(mask.indices)], mask.shape, mask.coalesced, mask.layout)


def coalesce(a: SparseArray) -> SparseArray:
    """Positions in row-major order, each once."""
    if a.coalesced:
        return a
    count = len(a.indices)
    if a.values.shape[0] == 0:
        return SparseArray(a.indices, a.values, a.shape, True)
    flat = np.ravel_multi_index(tuple(a.indices), a.shape[:count])
    places, owner = np.unique(flat, return_inverse=True)
    values = np.zeros((len(places), *a.values.shape[1:]), a.dtype)
    np.add.at(values, owner.reshape(-1), a.values)
    return SparseArray(np.stack(np.unravel_index(places, a.shape[:count])).astype(np.int64), values, a.shape, True)


def from_dense(a: np.ndarray, sparse_dim: int) -> SparseArray:
    """The elements that are not zero; with fewer sparse dimensions, the slices that are not all zero."""
    rest = tuple(range(sparse_dim, a.ndim))
    places = np.nonzero(a.any(axis=rest) if rest else a)
    return SparseArray(np.stack(places).astype(np.int64), a[places], a.shape, True)


def check(indices: np.ndarray, values: np.ndarray, size: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape, after a check that indices and values fit it."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if indices.shape[1] != (values.shape[0] if values.ndim else -1):
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz "
                           f"from values: {values.shape[0] if values.ndim else 1}")
    if size is None:
        extents = (indices.max(1) + 1) if indices.shape[1] else np.zeros(len(indices), np.int64)
        return (*(int(n) for n in extents), *values.shape[1:])
    shape = tuple(int(n) for n in size)
    if len(shape) != len(indices) + values.ndim - 1:
        raise RuntimeError(f"number of dimensions must be sparse_dim ({len(indices)}) + dense_dim ({values.ndim - 1}), "
                           f"but got {len(shape)}")
    for dim, (row, extent) in enumerate(zip(indices, shape)):
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {row.min()} for dim {dim}")
        if row.size and row.max() >= extent:
            raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {extent} but found index "
                               f"{row.max()}")
    return shape


def _sparse_product(a: SparseArray, b: SparseArray) -> SparseArray:
    """Combine every element of the first with the elements of the row of the second that its column names."""
    starts = np.searchsorted(b.indices[0], np.arange(b.shape[0] + 1))
    first = starts[a.indices[1]]
    counts = starts[a.indices[1] + 1] - first
    left = np.repeat(np.arange(len(counts)), counts)
    right = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    places = np.stack([a.indices[0][left], b.indices[1][right]])
    return coalesce(SparseArray(places, a.values[left] * b.values[right], (a.shape[0], b.shape[1]), False))


def _said(kind: np.dtype) -> str:
    return cpp_name(FROM_NUMPY[kind].name)


def product(a: SparseArray, b: Array) -> Any:
    """A sparse matrix by a dense one: rows of the second, scaled, summed by the row they belong to."""
    if a.ndim != 2 or len(a.indices) != 2:
        raise RuntimeError(f"addmm: matrices expected, got {a.ndim}D tensor")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")
    if isinstance(b, SparseArray):
        return _sparse_product(compressed(a, COO), coalesce(compressed(b, COO)))
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {_said(a.dtype)} but found {_said(b.dtype)}")
    made = np.zeros((a.shape[0], *b.shape[1:]), a.dtype)
    rows, columns = a.indices
    if not rows.size:
        return made
    values = a.values
    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        rows, columns, values = rows[order], columns[order], values[order]
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    scaled = np.take(b, columns, 0) * values.reshape(-1, *(1,) * (b.ndim - 1))
    made[rows[starts]] = sum_stretches(scaled, starts)
    return made


def transposed(a: SparseArray, dim0: int = 0, dim1: int = 1) -> SparseArray:
    """Two sparse dimensions exchanged."""
    order = list(range(a.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    if any(order[d] != d for d in range(len(a.indices), a.ndim)):
        raise NotImplementedError("transposing a sparse with a dense dimension of a sparse tensor is not supported")
    layout = {COO: COO, CSR: CSC, CSC: CSR}[a.layout] if dim0 != dim1 else a.layout
    return SparseArray(a.indices[order[:len(a.indices)]], a.values, tuple(a.shape[d] for d in order),
                       layout != COO, layout)


def compressed(a: SparseArray, layout: str) -> SparseArray:
    """The same elements in the order of a layout."""
    if a.layout == layout:
        return a
    if layout != COO and (a.ndim != 2 or len(a.indices) != 2):
        raise NotImplementedError(f"torch.{layout} is supported for matrices, without dense dimensions or batches")
    a = coalesce(SparseArray(a.indices, a.values, a.shape, a.layout == COO and a.coalesced))
    if layout != CSC:
        return SparseArray(a.indices, a.values, a.shape, True, layout)
    order = np.lexsort((a.indices[0], a.indices[1]))
    return SparseArray(np.ascontiguousarray(a.indices[:, order]), a.values[order], a.shape, True, layout)


def starts_of(a: SparseArray) -> np.ndarray:
    """Where each row of compressed rows, or column of compressed columns, begins; and the end."""
    dim = COMPRESSED[a.layout]
    return np.searchsorted(a.indices[dim], np.arange(a.shape[dim] + 1)).astype(np.int64)


def from_compressed(starts: np.ndarray, others: np.ndarray, values: np.ndarray, size: Any, layout: str) -> SparseArray:
    """Compressed rows or columns, after a check that they are valid."""
    dim = COMPRESSED[layout]
    which, other = ("crow_indices", "col_indices") if dim == 0 else ("ccol_indices", "row_indices")
    if starts.ndim != 1 or others.ndim != 1 or values.ndim != 1:
        raise NotImplementedError(f"torch.{layout}: batches and dense dimensions are not supported")
    if len(others) != len(values):
        raise RuntimeError(f"{other}.shape[-1] must be equal to nnz (={len(values)}) as defined by values.shape[0], "
                           f"but got {len(others)}")
    extent = int(others.max()) + 1 if len(others) else 0
    shape = tuple(size) if size is not None else ((len(starts) - 1, extent) if dim == 0 else (extent, len(starts) - 1))
    if len(shape) != 2:
        raise RuntimeError(f"tensor dimensionality must be 2, that of compressed tensors, but got {len(shape)}")
    lines, across = ("rows", "ncols") if dim == 0 else ("columns", "nrows")
    if len(starts) != shape[dim] + 1:
        raise RuntimeError(f"{which}.shape[-1] must be equal to the number of {lines} + 1 (={shape[dim] + 1}), but got "
                           f"{len(starts)}")
    counts, most = np.diff(starts), shape[1 - dim]
    for holds, rule in (
            (starts[0] == 0, f"{which}[..., 0] == 0"),
            (starts[-1] == len(others), f"{which}[..., -1] == nnz"),
            ((counts >= 0).all() and (counts <= most).all(),
             f"0 <= {which}[..., 1:] - {which}[..., :-1] <= {across}"),
            (not len(others) or (others.min() >= 0 and extent <= most), f"0 <= {other} < {across}")):
        if not holds:
            raise RuntimeError(f"`{rule}` is not satisfied.")
    main = np.repeat(np.arange(len(starts) - 1), counts)
    places = np.stack((main, others) if dim == 0 else (others, main)).astype(np.int64)
    order = np.lexsort((others, main))
    if (order[1:] < order[:-1]).any():
        places, values = places[:, order], values[order]
    return SparseArray(places, values, shape, True, layout)
