"""`torch.sparse`: functions of tensors in coordinate form and of matrices by their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._absent import refusing
from ._backends.sparse import COO, CSR, SparseArray
from ._construct import as_tensor
from ._dispatch.dtype_rules import unsupported
from ._dispatch.namespace import aten
from ._dispatch.promotion import pretty
from ._dtype import dtype, float32, float64, int32, int64
from ._shape import wrap_dim
from ._tensor import Tensor, wrap_known

__all__ = ["addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm",
           "softmax", "solve", "spdiags", "spsolve", "sum", "to_sparse_semi_structured"]

_REASON = "torch.sparse.{0} is not supported by this runtime, which has only the basic sparse functions; use to_dense()"
as_sparse_gradcheck = refusing("as_sparse_gradcheck", NotImplementedError, _REASON)
solve = refusing("solve", NotImplementedError, _REASON)
spsolve = refusing("spsolve", NotImplementedError, _REASON)
to_sparse_semi_structured = refusing("to_sparse_semi_structured", NotImplementedError, _REASON)


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Tensor:
    """The product of a sparse and a dense matrix; `reduce` says what becomes of the terms of an element."""
    if reduce != "sum":
        return _mm_reduce(mat1, mat2, reduce)
    if isinstance(mat2._a, SparseArray) and not isinstance(mat1._a, SparseArray):
        return aten.t(aten._sparse_mm(aten.t(mat2), aten.t(mat1)))
    return aten._sparse_mm(mat1, mat2)


def _refuse_layout(name: str, one: Tensor) -> None:
    if not isinstance(one._a, SparseArray) or one._a.layout != CSR:
        backend = "SparseCPU" if isinstance(one._a, SparseArray) else "CPU"
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{backend}' backend: it needs "
                                  "a matrix of the layout torch.sparse_csr")


def _layout_name(one: Tensor) -> str:
    return {COO: "Sparse", CSR: "SparseCsr"}.get(one._a.layout, "SparseCsc")


def _mm_reduce(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    _refuse_layout("_sparse_mm_reduce_impl", mat1)
    if isinstance(mat2._a, SparseArray):
        raise RuntimeError(f"Expected tensor to have Strided Layout, but got tensor with {_layout_name(mat2)} Layout "
                           "(while checking arguments for sparse_mm_reduce)")
    count, length = mat1.shape
    if mat2.dim() != 2 or mat2.shape[0] != length:
        raise RuntimeError(f"Expected a tensor of dimension 2 and tensor.size[0] == {length} but got: dimension "
                           f"{mat2.dim()} and tensor.size[0] = {mat2.shape[0]}")
    if mat1.dtype is not mat2.dtype:
        wanted, found = pretty(mat1.dtype), pretty(mat2.dtype)
        raise RuntimeError(f"Expected tensor for argument #1 'other' to have scalar type {wanted}; but got "
                           f"torch.{found}Tensor instead (while checking arguments for sparse_mm_reduce)")
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(f"sparse_mm_reduce: reduce type of {reduce} has not been enabled.")
    if not mat1.dtype.is_floating_point:
        raise unsupported("spmm_reduce_kernel", mat1._a.dtype)
    places = mat1._a.indices
    rows, columns = wrap_known(places[0]), wrap_known(places[1])
    terms = aten.mul(aten.unsqueeze(mat1.values(), 1), aten.index_select(mat2, 0, columns))
    zeros = mat2.new_zeros((count, mat2.shape[1]))
    if reduce != "mean":
        return aten.scatter_reduce(zeros, 0, aten.expand(aten.unsqueeze(rows, 1), terms.shape), terms, reduce,
                                   include_self=False)
    numbers = aten.clamp_min(aten.bincount(rows, minlength=count), 1)
    return aten.div(aten.index_add(zeros, 0, rows, terms), aten.unsqueeze(numbers, 1))


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1,
                  out: Tensor | None = None) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2` where the sparse `input` has elements; the others are not computed."""
    _refuse_layout("sparse_sampled_addmm", input)
    if input._a.dtype.kind not in "fc" or input._a.dtype.itemsize < 4:
        raise RuntimeError("sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got "
                           f"{pretty(input.dtype)}")
    for name, one in (("mat1", mat1), ("mat2", mat2)):
        if isinstance(one._a, SparseArray):
            raise RuntimeError(f"sampled_addmm: Expected {name} to have strided layout, but got {_layout_name(one)}")
        if one.dim() != 2:
            raise RuntimeError(f"sampled_addmm: Expected {name} to be a matrix, got {one.dim()}-D tensor")
    for first, second, names in ((mat1, mat2, "mat1 and mat2"), (input, mat1, "self and mat1")):
        if first.dtype is not second.dtype:
            raise RuntimeError(f"sampled_addmm: Expected {names} to have the same dtype, but got "
                               f"{pretty(first.dtype)} and {pretty(second.dtype)}")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError("sampled_addmm: mat1 and mat2 shapes cannot be multiplied "
                           f"({mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})")
    for at, name, one in ((-2, "mat1", mat1), (-1, "mat2", mat2)):
        if input.shape[at] != one.shape[at]:
            raise RuntimeError(f"sampled_addmm: self.shape[{at}] must match {name}.shape[{at}]")
    rows, columns = (wrap_known(one) for one in input._a.indices)
    terms = aten.sum(aten.mul(aten.index_select(mat1, 0, rows), aten.t(aten.index_select(mat2, 1, columns))), 1)
    values = aten.mul(terms, alpha)
    if beta != 0:
        values = aten.add(values, aten.mul(input.values(), beta))
    made = aten.sparse_csr_tensor(input.crow_indices(), input.col_indices(), values, input.shape)
    if out is None:
        return made
    if out._a.values.shape != made._a.values.shape:
        raise NotImplementedError("sampled_addmm: out= needs as many elements as input has")
    out._a.values[...] = made._a.values
    out._a.indices[...] = made._a.indices
    return out


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """`beta * mat + alpha * mat1 @ mat2` with a sparse `mat1`."""
    return aten.add(aten.mul(mat, beta) if beta != 1 else mat, aten._sparse_mm(mat1, mat2), alpha=alpha)


def _softmax(input: Tensor, dim: int, dtype: dtype | None, log: bool) -> Tensor:
    if not isinstance(input._a, SparseArray) or input._a.layout != COO:
        raise RuntimeError(f"{'log_' * log}softmax: expected a tensor in coordinate form")
    together = aten.coalesce(input if dtype is None else aten.to(input, dtype))
    dim = wrap_dim(dim, input.dim())
    rows, values = together._a.indices, together.values()
    if dim >= len(rows):
        made = (aten.log_softmax if log else aten.softmax)(values, dim - len(rows) + 1)
    else:
        made = _along_sparse(np.delete(rows, dim, 0), np.delete(np.array(input.shape[:len(rows)]), dim), values, log)
    return aten.sparse_coo_tensor(wrap_known(rows.copy()), made, input.shape, is_coalesced=True)


def _along_sparse(others: np.ndarray, extents: np.ndarray, values: Tensor, log: bool) -> Tensor:
    """The softmax over the elements whose other positions are the same."""
    flat = np.ravel_multi_index(tuple(others), tuple(extents)) if len(others) else np.zeros(len(values), np.int64)
    groups, owner = np.unique(flat, return_inverse=True)
    of = wrap_known(owner.reshape(-1).astype(np.int64))
    blank = aten.zeros((len(groups), *values.shape[1:]), dtype=values.dtype)
    highest = aten.index_reduce(blank, 0, of, values.detach(), "amax", include_self=False)
    shifted = values - aten.index_select(highest, 0, of)
    powers = aten.exp(shifted)
    total = aten.index_select(aten.index_add(blank, 0, of, powers), 0, of)
    return shifted - aten.log(total) if log else powers / total


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """The softmax of the elements that are given; all others count as minus infinity."""
    return _softmax(input, dim, dtype, False)


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    return _softmax(input, dim, dtype, True)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with rows of a matrix on some of its diagonals."""
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if diagonals.dim() > 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    diagonals = diagonals if diagonals.dim() == 2 else aten.reshape(diagonals, (1, -1))
    offsets = offsets if offsets.dim() else aten.reshape(offsets, (1,))
    if offsets.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.dtype is not int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {pretty(offsets.dtype)}")
    if len(diagonals) != len(offsets):
        raise RuntimeError(f"Number of diagonals ({len(diagonals)}) does not match the number of offsets "
                           f"({len(offsets)})")
    if layout is not None and repr(layout) not in ("torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc"):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout!r}")
    below = np.asarray(offsets.tolist(), np.int64)
    if len(np.unique(below)) != len(below):
        raise RuntimeError("Offset tensor contains duplicate values")
    columns = np.arange(diagonals.shape[1])
    rows = columns - below[:, None]
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    which, column = np.nonzero(inside)
    places = wrap_known(np.stack([rows[inside], column]).astype(np.int64))
    made = aten.sparse_coo_tensor(places, diagonals[wrap_known(which), wrap_known(column)], tuple(shape))
    return made if layout is None else made.to_sparse(layout=layout)


def sum(input: Tensor, dim: Any = None, dtype: dtype | None = None) -> Tensor:
    """The sum of all elements, or over some dimensions: sparse, unless all sparse dimensions are summed."""
    if dtype is not None:
        input = aten.to(input, dtype)
    together = aten.coalesce(input) if not input.is_coalesced() else input
    if dim is None:
        return aten.sum(together.values())
    over = {d % input.dim() for d in ((dim,) if isinstance(dim, int) else dim)}
    sparse = input.sparse_dim()
    held = together.values()
    inner = [d - sparse + 1 for d in over if d >= sparse]
    if inner:
        held = aten.sum(held, inner)
    kept = [d for d in range(sparse) if d not in over]
    if not kept:
        return aten.sum(held, 0)
    shape = [n for d, n in enumerate(input.shape) if d not in over]
    rows = aten.stack([together.indices()[d] for d in kept])
    made: Tensor = aten.sparse_coo_tensor(rows, held, shape).coalesce()
    return made


class check_sparse_tensor_invariants:
    """Whether new sparse tensors are checked: they always are, so that this changes nothing."""

    def __init__(self, enable: bool = True) -> None:
        self.enabled = enable

    @staticmethod
    def is_enabled() -> bool:
        """True."""
        return True

    @staticmethod
    def enable() -> None:
        """Nothing to do."""

    @staticmethod
    def disable() -> None:
        """Nothing to do: the checks stay."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def _legacy(kind: dtype) -> Any:
    def construct(indices: Any, values: Any, size: Any = None) -> Tensor:
        """A sparse tensor, by the old constructor."""
        return aten.sparse_coo_tensor(as_tensor(indices), aten.to(as_tensor(values), kind), size)

    return construct


FloatTensor, DoubleTensor = _legacy(float32), _legacy(float64)
IntTensor, LongTensor = _legacy(int32), _legacy(int64)
