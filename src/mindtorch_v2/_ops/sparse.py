"""Sparse tensors: making them, taking them apart, and their product with dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._autograd.graph import as_leaf
from .._backends import sparse as kernels
from .._backends.base import to_host
from .._backends.sparse import COO, CSC, CSR, SparseArray
from .._construct import as_tensor
from .._device import DeviceLike, as_device
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dtype import DefaultDtype, DType, int64
from .._shape import as_shape
from .._tensor import Tensor, wrap_known
from .formulas import conj


def _make(sparse_dim: int, dense_dim: int, size: Any, indices: Any, values: Any, is_coalesced: Any) -> SparseArray:
    # A single position cannot repeat.
    coalesced = len(values) < 2 if is_coalesced is None else is_coalesced
    return SparseArray(indices, values, kernels.check(indices, values, size), coalesced)


def _picked(grad: Tensor, indices: Tensor) -> Tensor:
    """The gradient at the positions that have values."""
    return grad.to_dense()[tuple(aten.unbind(indices, 0))]


declare(
    "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, int[]? size, Tensor indices, "
    "Tensor values, *, bool? is_coalesced=None) -> Tensor", cpu=_make, where="n",
    grad={"values": lambda grad, indices: _picked(grad, indices)},
)
declare(
    "sparse_coo_tensor(Tensor indices, Tensor values, int[]? size=None, *, bool? is_coalesced=None) -> Tensor",
    composite=lambda indices, values, size, is_coalesced: aten._sparse_coo_tensor_with_dims_and_tensors(
        indices.shape[0] if indices.dim() else 0, values.dim() - 1, size, indices, values, is_coalesced=is_coalesced),
    where="n",
)


def _without_elements(size: tuple[int, ...], dtype: DType | None, requires_grad: bool) -> Tensor:
    """A sparse tensor of a shape, with nothing but zeros."""
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    held = np.empty(0, (DefaultDtype.value if dtype is None else dtype).np)
    made = wrap_known(SparseArray(np.empty((len(size), 0), np.int64), held, tuple(map(int, size)), True))
    return made.requires_grad_(True) if requires_grad else made


@choose("sparse_coo_tensor", where="f")
def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Any = None, *, dtype: DType | None = None,
                      device: DeviceLike = None, pin_memory: bool = False, requires_grad: bool = False,
                      check_invariants: bool | None = None, is_coalesced: bool | None = None) -> Tensor:
    """A sparse tensor with the given values at the given positions; positions may repeat."""
    if device is not None and as_device(device).type != "cpu":
        raise NotImplementedError("sparse tensors are supported on the CPU only")
    if values is None:
        # Only a size is given, by position or by name: a tensor without elements.
        if (size is None) == (indices is None) or isinstance(indices, Tensor):
            raise TypeError("sparse_coo_tensor() received an invalid combination of arguments: it needs indices and "
                            "values, or a size alone")
        return _without_elements(as_shape(indices if size is None else size), dtype, requires_grad)
    places, held = (one if isinstance(one, Tensor) else as_tensor(one) for one in (indices, values))
    places = places if places.dtype is int64 else aten.to(places, int64)
    held = held if dtype is None else aten.to(held, dtype)
    made: Tensor = aten.sparse_coo_tensor__default(places, held, size, is_coalesced=is_coalesced)
    return as_leaf(made) if requires_grad else made


_WORDS = {COO: "Sparse", CSR: "SparseCsr", CSC: "SparseCsc"}


def _layout_word(self: Tensor) -> str:
    return _WORDS[self._a.layout] if isinstance(self._a, SparseArray) else "Strided"


def _sparse(self: Tensor, name: str, any_layout: bool = False) -> SparseArray:
    if not isinstance(self._a, SparseArray) or (self._a.layout != COO and not any_layout):
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {_layout_word(self)}")
    return self._a


def _compressed(self: Tensor, name: str, layout: str) -> SparseArray:
    if not isinstance(self._a, SparseArray) or self._a.layout != layout:
        word = "row" if layout == CSR else "column"
        raise RuntimeError(f"{name} expected sparse {word} compressed tensor layout but got {_layout_word(self)}")
    return self._a


declare("_coalesce(Tensor self) -> Tensor", cpu=lambda a: a, where="f", grad={"self": lambda grad: grad})
declare("coalesce(Tensor self) -> Tensor", where="n",
        composite=lambda self: self if _sparse(self, "coalesce").coalesced else aten._coalesce(self))
choose("coalesce", where="m")(lambda self: aten.coalesce__default(self))
declare(
    "values(Tensor self) -> Tensor", cpu=lambda a: a, where="n", node="ValuesBackward0",
    grad={"self": lambda grad, self: aten.sparse_coo_tensor(wrap_known(self._a.indices), grad, self.shape).to_dense()},
)


@choose("values", where="m")
def values(self: Tensor) -> Tensor:
    """The values of a coalesced tensor."""
    if not _sparse(self, "values", True).coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return aten.values__default(self)


@choose("indices", where="m")
def indices(self: Tensor) -> Tensor:
    """The positions of a coalesced tensor."""
    if not _sparse(self, "indices").coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return _indices(self)


@choose("_indices", where="m")
def _indices(self: Tensor) -> Tensor:
    return wrap_known(_sparse(self, "_indices").indices)


@choose("_values", where="m")
def _values(self: Tensor) -> Tensor:
    return wrap_known(_sparse(self, "_values").values)


@choose("_nnz", where="m")
def _nnz(self: Tensor) -> int:
    return int(_sparse(self, "_nnz", True).indices.shape[1])


@choose("is_coalesced", where="m")
def is_coalesced(self: Tensor) -> bool:
    """Whether positions are sorted and each occurs once."""
    return bool(_sparse(self, "is_coalesced").coalesced)


@choose("_coalesced_", where="m")
def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    """Say that positions are sorted and different, without a look."""
    _sparse(self, "_coalesced_").coalesced = bool(coalesced)
    return self


def _to_sparse(a: Any, sparse_dim: int | None) -> SparseArray:
    return kernels.from_dense(a, a.ndim if sparse_dim is None else sparse_dim)


declare("_to_sparse(Tensor self, int? sparse_dim=None) -> Tensor", cpu=_to_sparse, where="n",
        node="ToSparseBackward0", grad={"self": lambda grad: grad.to_dense()})
declare("to_sparse(Tensor self, int? sparse_dim=None) -> Tensor", where="n",
        composite=lambda self, sparse_dim: aten._to_sparse(self, sparse_dim))


@choose("to_sparse", where="m")
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, **options: Any) -> Tensor:
    """The elements that are not zero, with their positions."""
    name = COO if layout is None else repr(layout).removeprefix("torch.")
    if name not in _WORDS or options.get("blocksize") is not None:
        raise NotImplementedError("to_sparse: this runtime has the layouts torch.sparse_coo, sparse_csr and sparse_csc")
    if isinstance(self._a, SparseArray) and self._a.layout == name:
        if sparse_dim is not None and sparse_dim != len(self._a.indices):
            raise RuntimeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument "
                               "!=self.sparse_dim() is not supported")
        return self
    if name == COO:
        return aten.to_sparse__default(self, sparse_dim)
    return aten._to_sparse_csr(self) if name == CSR else aten._to_sparse_csc(self)


choose("to_sparse_coo", where="m")(lambda self: to_sparse(self))
for _name, _layout in (("_to_sparse_csr", CSR), ("_to_sparse_csc", CSC)):
    declare(f"{_name}(Tensor self, int? dense_dim=None) -> Tensor", where="n",
            cpu=lambda a, dense_dim=None, _layout=_layout: kernels.compressed(kernels.from_dense(a, a.ndim), _layout),
            node=f"ToSparse{_layout[-3:].capitalize()}Backward0", grad={"self": lambda grad: grad.to_dense()})
    choose(_name[1:], where="m")(lambda self, dense_dim=None, _name=_name: getattr(aten, _name)(self, dense_dim))


def _compress(starts: Any, others: Any, values: Any, size: Any, column_major: bool) -> SparseArray:
    return kernels.from_compressed(starts, others, values, size, CSC if column_major else CSR)


def _picked_compressed(grad: Tensor, starts: Tensor, others: Tensor, column_major: bool) -> Tensor:
    """The gradient at the positions that have values."""
    main = _convert_indices_from_csr_to_coo(starts, others)[0]
    rows, columns = (others, main) if column_major else (main, others)
    return grad.to_dense()[rows, columns]


declare(
    "_sparse_compressed_tensor_from_parts(Tensor compressed_indices, Tensor plain_indices, Tensor values, int[]? size, "
    "bool column_major) -> Tensor", cpu=_compress, where="n",
    grad={"values": lambda grad, compressed_indices, plain_indices, column_major: _picked_compressed(
        grad, compressed_indices, plain_indices, column_major)},
)


@choose("sparse_compressed_tensor", where="f")
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *,
                             dtype: DType | None = None, layout: Any = None, device: DeviceLike = None,
                             pin_memory: bool = False, requires_grad: bool = False,
                             check_invariants: bool | None = None) -> Tensor:
    """A matrix by its rows (`torch.sparse_csr`) or columns (`torch.sparse_csc`)."""
    name = str(layout).removeprefix("torch.")
    if name not in (CSR, CSC):
        raise NotImplementedError(f"sparse_compressed_tensor: this runtime has sparse_csr and sparse_csc, not {layout}")
    if device is not None and as_device(device).type != "cpu":
        raise NotImplementedError("sparse tensors are supported on the CPU only")
    starts, others, held = (one if isinstance(one, Tensor) else as_tensor(one)
                            for one in (compressed_indices, plain_indices, values))
    starts, others = (one if one.dtype is int64 else aten.to(one, int64) for one in (starts, others))
    held = held if dtype is None else aten.to(held, dtype)
    made: Tensor = aten._sparse_compressed_tensor_from_parts(starts, others, held, size, name == CSC)
    return as_leaf(made) if requires_grad else made


@choose("sparse_csr_tensor", where="f")
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any) -> Tensor:
    """A matrix by its rows: where each begins, the columns and the values of its elements."""
    return sparse_compressed_tensor(crow_indices, col_indices, values, size,
                                    **{**options, "layout": "torch.sparse_csr"})


@choose("sparse_csc_tensor", where="f")
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any) -> Tensor:
    """A matrix by its columns."""
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size,
                                    **{**options, "layout": "torch.sparse_csc"})


choose("crow_indices", where="m")(
    lambda self: wrap_known(kernels.starts_of(_compressed(self, "crow_indices", CSR))))
choose("col_indices", where="m")(lambda self: wrap_known(_compressed(self, "col_indices", CSR).indices[1]))
choose("ccol_indices", where="m")(
    lambda self: wrap_known(kernels.starts_of(_compressed(self, "ccol_indices", CSC))))
choose("row_indices", where="m")(lambda self: wrap_known(_compressed(self, "row_indices", CSC).indices[0]))


@choose("_convert_indices_from_coo_to_csr", where="f")
def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each row begins in a sorted list of rows."""
    starts = np.searchsorted(to_host(input._a), np.arange(size + 1))
    return wrap_known(starts.astype(np.int32 if out_int32 else np.int64))


@choose("_convert_indices_from_csr_to_coo", where="f")
def _convert_indices_from_csr_to_coo(crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False,
                                     transpose: bool = False) -> Tensor:
    """Rows and columns of compressed rows."""
    starts, others = to_host(crow_indices._a), to_host(col_indices._a)
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    places = np.stack((others, rows) if transpose else (rows, others))
    return wrap_known(places.astype(np.int32 if out_int32 else np.int64))


declare("_to_dense(Tensor self) -> Tensor", cpu=np.asarray, where="n", node="ToDenseBackward0",
        grad={"self": lambda grad: grad})
declare("to_dense(Tensor self) -> Tensor", composite=lambda self: aten._to_dense(self), where="n")
declare("sparse_mask(Tensor self, Tensor mask) -> Tensor", cpu=kernels.masked, where="m",
        grad={"self": lambda grad, mask: aten.sparse_mask(grad.to_dense(), mask).to_dense()})
declare(
    "_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", cpu=np.matmul, where="n", node="SparseAddmmBackward0",
    grad={
        "sparse": lambda grad, dense: aten.mm(grad, conj(aten.t(dense))),
        "dense": lambda grad, sparse: aten._sparse_mm(conj(aten.t(sparse)), grad),
    },
)


@choose("dsmm", where="f")
@choose("spmm", where="f")
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix."""
    return aten.mm(input, mat2)
