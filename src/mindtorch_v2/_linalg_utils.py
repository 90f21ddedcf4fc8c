"""`torch._linalg_utils`: small helpers of linear algebra, where a matrix that is None is the unit matrix."""

from __future__ import annotations

from typing import Any

from ._backends.sparse import SparseArray
from ._dispatch.namespace import aten
from ._dtype import DType, float16, float32, float64
from ._refused import refused
from ._tensor import Tensor

eig, lstsq, matrix_rank, solve, _symeig = (refused(name) for name in ("eig", "lstsq", "matrix_rank", "solve", "symeig"))


def is_sparse(A: Any) -> bool:
    """Whether a tensor is sparse."""
    if not isinstance(A, Tensor):
        raise TypeError(f"expected Tensor but got {type(A)}")
    return isinstance(A._a, SparseArray)


def get_floating_dtype(A: Tensor) -> DType:
    """The dtype to compute in: that of a tensor of floats, float32 for others."""
    return A.dtype if A.dtype in (float16, float32, float64) else float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """The product with a matrix that may be sparse."""
    if A is None:
        return B
    return aten._sparse_mm(A, B) if is_sparse(A) else aten.matmul(A, B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """`X^T A Y`."""
    return aten.matmul(aten.transpose(X, -2, -1), matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """`S^T A S`."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthogonal basis of the columns."""
    return aten.linalg_qr(A)[0]


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and vectors of a symmetric matrix, by size."""
    values, vectors = aten.linalg_eigh(A, "U")
    return (aten.flip(values, (-1,)), aten.flip(vectors, (-1,))) if largest else (values, vectors)
