"""Sparse tensors in coordinate form: making them, taking them apart, and their product with dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends import sparse as kernels
from .._backends.sparse import SparseArray
from .._construct import as_tensor
from .._device import as_device
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dtype import int64
from .._tensor import Tensor, wrap_known
from .formulas import conj


def _make(sparse_dim: int, dense_dim: int, size: Any, indices: Any, values: Any, is_coalesced: Any) -> SparseArray:
    return SparseArray(indices, values, kernels.check(indices, values, size), bool(is_coalesced))


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


@choose("sparse_coo_tensor", where="f")
def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
                      pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None) -> Tensor:
    """A sparse tensor with the given values at the given positions; positions may repeat."""
    if device is not None and as_device(device).type != "cpu":
        raise NotImplementedError("sparse tensors are supported on the CPU only")
    places, held = (one if isinstance(one, Tensor) else as_tensor(one) for one in (indices, values))
    places = places if places.dtype is int64 else aten.to(places, int64)
    held = held if dtype is None else aten.to(held, dtype)
    made: Tensor = aten.sparse_coo_tensor__default(places, held, size, is_coalesced=is_coalesced)
    return made.requires_grad_(True) if requires_grad else made


def _sparse(self: Tensor, name: str) -> SparseArray:
    if not isinstance(self._a, SparseArray):
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got Strided")
    return self._a


declare("_coalesce(Tensor self) -> Tensor", cpu=lambda a: a, where="n", grad={"self": lambda grad: grad})
declare("coalesce(Tensor self) -> Tensor", where="n",
        composite=lambda self: self if _sparse(self, "coalesce").coalesced else aten._coalesce(self))
choose("coalesce", where="m")(lambda self: aten.coalesce__default(self))
declare(
    "values(Tensor self) -> Tensor", cpu=lambda a: a, where="n", node="ValuesBackward0",
    grad={"self": lambda grad, self: aten.sparse_coo_tensor(_indices(self), grad, self.shape).to_dense()},
)


@choose("values", where="m")
def values(self: Tensor) -> Tensor:
    """The values of a coalesced tensor."""
    if not _sparse(self, "values").coalesced:
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
    return int(_sparse(self, "_nnz").indices.shape[1])


@choose("is_coalesced", where="m")
def is_coalesced(self: Tensor) -> bool:
    """Whether positions are sorted and each occurs once."""
    return bool(_sparse(self, "is_coalesced").coalesced)


def _to_sparse(a: Any, sparse_dim: int | None) -> SparseArray:
    return kernels.from_dense(a, a.ndim if sparse_dim is None else sparse_dim)


declare("_to_sparse(Tensor self, int? sparse_dim=None) -> Tensor", cpu=_to_sparse, where="n",
        node="ToSparseBackward0", grad={"self": lambda grad: grad.to_dense()})
declare("to_sparse(Tensor self, int? sparse_dim=None) -> Tensor", where="n",
        composite=lambda self, sparse_dim: aten._to_sparse(self, sparse_dim))


@choose("to_sparse", where="m")
def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, **options: Any) -> Tensor:
    """The elements that are not zero, with their positions."""
    if (layout is not None and repr(layout) != "torch.sparse_coo") or options:
        raise NotImplementedError("to_sparse: this runtime has only the layout torch.sparse_coo")
    return self if isinstance(self._a, SparseArray) else aten.to_sparse__default(self, sparse_dim)


choose("to_sparse_coo", where="m")(lambda self: to_sparse(self))
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


@choose("spmm", where="f")
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix."""
    return aten.mm(input, mat2)
