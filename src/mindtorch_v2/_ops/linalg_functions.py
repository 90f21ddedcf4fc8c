"""Linear algebra made of the factorisations: eigenvalues of any matrix, exponentials, reflections, tensor equations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._backends.cpu import factorization as kernels
from .._backends.sparse import SparseArray
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import choose, declare
from .._dtype import FLOAT, HALF_TYPES, INTEGER, bool_, int64
from .._shape import numel, wrap_dim
from .._tensor import Tensor, wrap_known
from .formulas import conj
from .linalg import adjoint, check_matrix, refuse_phase, unused
from .return_types import named

# -- eigenvalues -----------------------------------------------------------------------------------------------------


def _eig_backward(grads: Any, self: Tensor, result0: Any, result1: Any) -> Any:
    grad_values, grad_vectors = grads
    values, vectors = result0, result1
    if unused(grad_vectors):
        made = aten.linalg_solve(adjoint(vectors), aten.unsqueeze(grad_values, -1) * adjoint(vectors))
        return made if self.dtype.is_complex else aten.real(made)
    inner = aten.matmul(adjoint(vectors), grad_vectors)
    along = aten.diagonal(inner, 0, -2, -1)
    refuse_phase("linalg_eig_backward", "eigenvectors", along)
    along = aten.real(along)  # the vectors have length 1: nothing flows along them
    inner = inner - aten.matmul(adjoint(vectors), vectors * aten.unsqueeze(along, -2))
    one = aten.eye(values._a.shape[-1], dtype=values.dtype, device=values.device)
    gaps = conj(aten.unsqueeze(values, -2) - aten.unsqueeze(values, -1))
    off_diagonal = inner / (gaps + one) * (1 - one)
    whole = off_diagonal + aten.diag_embed(grad_values, 0, -2, -1)
    made = aten.linalg_solve(adjoint(vectors), aten.matmul(whole, adjoint(vectors)))
    return made if self.dtype.is_complex else aten.real(made)


def _eig(a: Any) -> Any:
    check_matrix("linalg.eig", wrap_known(a), square=True)
    if not np.all(np.isfinite(a)):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return kernels.eig(a)


declare("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", cpu=_eig, where="n",
        grad={"self": _eig_backward})


@choose("linalg_eig", where="n")
def linalg_eig(input: Tensor) -> Any:
    """Eigenvalues and eigenvectors of a square matrix."""
    return named("linalg_eig", ("eigenvalues", "eigenvectors"))(aten.linalg_eig__default(input))


def _eigvals(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("linalg.eigvals: The input tensor A must have at least 2 dimensions.")
    return aten.linalg_eig(self)[0]


declare("linalg_eigvals(Tensor self) -> Tensor", composite=_eigvals, where="n")


# -- exponential -----------------------------------------------------------------------------------------------------


def _exp_backward(grad: Tensor, self: Tensor) -> Any:
    """The derivative in the direction of `grad` is a corner of the exponential of a matrix of twice the size."""
    size = self._a.shape[-1]
    turned = adjoint(self)
    zeros = aten.zeros_like(turned)
    top, bottom = aten.cat([turned, grad], -1), aten.cat([zeros, turned], -1)
    whole = aten.linalg_matrix_exp(aten.cat([top, bottom], -2))
    return aten.narrow(aten.narrow(whole, -2, 0, size), -1, size, size)


def _matrix_exp(a: Any) -> Any:
    check_matrix("linalg.matrix_exp", wrap_known(a), square=True, low_precision=True)
    return kernels.matrix_exp(a)


declare("linalg_matrix_exp(Tensor self) -> Tensor", cpu=_matrix_exp, where="n", grad={"self": _exp_backward})
declare("matrix_exp(Tensor self) -> Tensor", composite=lambda self: aten.linalg_matrix_exp(self))


# -- condition, diagonals, products ----------------------------------------------------------------------------------


def _cond(self: Tensor, p: Any) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        values = aten.linalg_svdvals(self)
        if not values._a.shape[-1]:
            return aten.sum__dim_IntList(values, (-1,), False)  # the condition of nothing is 0
        largest, smallest = aten.narrow(values, -1, 0, 1), aten.narrow(values, -1, values._a.shape[-1] - 1, 1)
        return aten.squeeze__dim(smallest / largest if p == -2 else largest / smallest, -1)
    if (p not in ("fro", "nuc")) if isinstance(p, str) else abs(p) not in (1, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_matrix(f"linalg.cond(ord={p})", self, square=True)
    inverse, infos = aten.linalg_inv_ex(self)
    if bool(aten.any(infos)):
        # The condition of a singular matrix is infinite.
        inverse = aten.masked_fill(inverse, aten.unsqueeze(aten.unsqueeze(infos != 0, -1), -1), math.inf)
    made = aten.linalg_matrix_norm(self, p) * aten.linalg_matrix_norm(inverse, p) if p != "nuc" else _nuclear(
        self, inverse, infos)
    return aten.where(infos != 0, math.inf, made) if bool(aten.any(infos)) else made


def _nuclear(a: Tensor, inverse: Tensor, infos: Tensor) -> Tensor:
    if bool(aten.any(infos)):
        inverse = aten.where(aten.isfinite(inverse), inverse, 0.0)
    return aten.linalg_matrix_norm(a, "nuc") * aten.linalg_matrix_norm(inverse, "nuc")


declare("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", composite=_cond, where="n")
declare("linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", where="n",
        composite=lambda a, offset, dim1, dim2: aten.diagonal(a, offset, dim1, dim2))


def _vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    if x.dtype.category < FLOAT:
        raise RuntimeError("linalg.vecdot: Expected a floating point or complex tensor as input. Got "
                           f"{pretty(x.dtype)}")
    if x.dtype is not y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
                           f"{pretty(x.dtype)} and y of type {pretty(y.dtype)} instead")
    if x.ndim == 1 and y.ndim == 1:
        return aten.vdot(x, y)
    return aten.sum__dim_IntList(conj(x) * y, (dim,))


declare("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", composite=_vecdot, where="n")


def _linalg_vander(x: Tensor, count: int | None) -> Tensor:
    if x.dtype is bool_ or x._a.dtype in HALF_TYPES:
        raise RuntimeError("linalg.vander supports floating point, complex, and integer tensors, but got "
                           f"{pretty(x.dtype)}")
    if not x.ndim:
        x = aten.unsqueeze(x, 0)
    size = x._a.shape[-1] if count is None else count
    if size <= 1:
        raise RuntimeError("N must be greater than 1.")
    kind = int64 if x.dtype.category <= INTEGER else x.dtype
    ones = aten.ones((*x._a.shape, 1), dtype=kind, device=x.device)
    powers = aten.expand(aten.unsqueeze(x, -1), (*x._a.shape, size - 1))
    return aten.cat([ones, aten.cumprod(aten.to(powers, kind), -1)], -1)


declare("linalg_vander(Tensor x, *, int? N=None) -> Tensor", composite=_linalg_vander, where="n")


def _vander(x: Tensor, count: int | None, increasing: bool) -> Tensor:
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    size = x._a.shape[0] if count is None else count
    if size < 0:
        raise RuntimeError("N must be non-negative.")
    kind = int64 if x.dtype.category <= INTEGER else x.dtype
    if size == 0:
        return aten.empty((x._a.shape[0], 0), dtype=kind, device=x.device)
    if not x._a.size:
        return aten.empty((0, size), dtype=kind, device=x.device)
    made = aten.linalg_vander(aten.to(x, kind), N=size)
    return made if increasing else aten.flip(made, (1,))


declare("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", composite=_vander, where="f")


# -- tensor equations ------------------------------------------------------------------------------------------------


def _tensorinv(self: Tensor, ind: int) -> Tensor:
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    head, tail = self._a.shape[:ind], self._a.shape[ind:]
    if numel(head) != numel(tail):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]),"
                           f" but got {numel(tail)} != {numel(head)}")
    inverse = aten.linalg_inv(aten.reshape(self, (numel(head), numel(tail))))
    return aten.reshape(inverse, (*tail, *head))


def _tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None) -> Tensor:
    a = self
    if dims is not None:
        moved = [wrap_dim(d, a.ndim) for d in ((dims,) if isinstance(dims, int) else dims)]
        a = aten.movedim(a, moved, list(range(a.ndim - len(moved), a.ndim)))
    tail = a._a.shape[other.ndim:]
    if numel(tail) != other._a.size:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           f"prod(self.shape[:other.ndim]), but got {numel(tail)} != {other._a.size}")
    matrix = aten.reshape(a, (other._a.size, numel(tail)))
    return aten.reshape(aten.linalg_solve(matrix, aten.reshape(other, (-1,))), tail)


declare("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", composite=_tensorinv, where="n")
declare("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", composite=_tensorsolve, where="n")


# -- few singular values by random projection ------------------------------------------------------------------------


def get_approximate_basis(A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None) -> Tensor:
    """A basis of what the largest singular vectors of `A`, or of `A - M`, span, approximately."""
    def centred(x: Any, turned: bool) -> Any:
        if turned:
            made = aten.matmul(aten.mH(A), x)
            return made if M is None else made - aten.matmul(aten.mH(M), x)
        made = aten.matmul(A, x)
        return made if M is None else made - aten.matmul(M, x)

    start = aten.randn(A._a.shape[-1], q, dtype=A.dtype, device=A.device)
    found = aten.linalg_qr(centred(start, False))[0]
    for _ in range(2 if niter is None else niter):
        found = aten.linalg_qr(centred(found, True))[0]
        found = aten.linalg_qr(centred(found, False))[0]
    return found


@choose("svd_lowrank", where="f")
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> Any:
    """The largest singular values and vectors, approximately, of `A` or of `A - M`."""
    count = 6 if q is None else q
    mean = None if M is None else aten.expand(M, A._a.shape)
    wide = A._a.shape[-2] < A._a.shape[-1]
    if wide:
        A, mean = aten.mH(A), None if mean is None else aten.mH(mean)
    basis = get_approximate_basis(A, count, niter, mean)
    small = aten.matmul(aten.mH(basis), A)
    if mean is not None:
        small = small - aten.matmul(aten.mH(basis), mean)
    u, s, vh = aten.linalg_svd(small, False)
    v = aten.mH(vh)
    u = aten.matmul(basis, u)
    return (v, s, u) if wide else (u, s, v)


@choose("pca_lowrank", where="f")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Principal components of the rows of `A`, approximately."""
    rows, columns = A._a.shape[-2:]
    count = min(6, rows, columns) if q is None else q
    if not 0 <= count <= min(rows, columns):
        raise ValueError(f"q(={count}) must be non-negative integer and not greater than min(m, n)="
                         f"{min(rows, columns)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if A.dtype.category < FLOAT:
        raise ValueError(f"input must have a floating point type, got {A.dtype}")
    if center and isinstance(A._a, SparseArray):
        # The matrix stays sparse: its mean is taken off each product.
        total = aten.matmul(aten.mH(A), aten.ones(rows, 1, dtype=A.dtype, device=A.device))
        return svd_lowrank(A, count, niter, aten.mH(total) / rows)
    if center:
        A = A - aten.mean(A, (-2,), keepdim=True)
    return svd_lowrank(A, count, niter)
