"""Kernels of matrix factorisations and functions that np.linalg lacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..flipped import flipped
from . import blas, lapack
from .columns import by_columns, columns, loop
from .linalg import LARGE, SINGULAR_INVERSE, adjoint, raise_first, svd

FEW = 8  # matrices of a batch up to which a call from Python for each does not count

SINGULAR_LU = ("{2}: {0}U[{1},{1}] is zero and using it on lu_solve would result in a division by "
               "zero. If you still want the factors, call linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")

RANK_DEFICIENT = ("torch.linalg.lstsq: {0}The least squares solution could not be computed because the input matrix "
                  "does not have full rank (error code: {1}).")
NOT_CONVERGED = "torch.linalg.lstsq: {0}The algorithm did not converge (error code: {1})."


def lu_factor(a: np.ndarray, pivot: bool, check_errors: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and U in one matrix, the row exchanged with each row (from 1), and the first zero on the diagonal (or 0)."""
    made = (blas.lu(a) if pivot else None) or _eliminate(a, pivot)
    if check_errors:
        raise_first(made[2], SINGULAR_LU, "torch.linalg.lu_factor_ex")
    return made


def _eliminate(a: np.ndarray, pivot: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = a.shape[-2:]
    count = min(rows, columns)
    lu = np.ascontiguousarray(a).reshape(math.prod(a.shape[:-2]), rows, columns).copy()
    batch = np.arange(len(lu))
    pivots = np.broadcast_to(np.arange(1, count + 1, dtype=np.int32), (len(lu), count)).copy()
    infos = np.zeros(len(lu), np.int32)
    for k in range(count):
        if pivot:
            chosen = k + np.argmax(_size(lu[:, k:, k]), axis=1)
            pivots[:, k] = chosen + 1
            row = lu[batch, chosen].copy()
            lu[batch, chosen] = lu[:, k]
            lu[:, k] = row
        corner = lu[:, k, k]
        zero = corner == 0
        infos = np.where(zero & (infos == 0), np.int32(k + 1), infos)
        if k + 1 < rows:
            factor = lu[:, k + 1:, k] / np.where(zero, np.ones((), a.dtype), corner)[:, None]
            lu[:, k + 1:, k] = factor
            lu[:, k + 1:, k + 1:] -= factor[:, :, None] * lu[:, k, None, k + 1:]
    return by_columns(lu.reshape(a.shape)), pivots.reshape(*a.shape[:-2], count), infos.reshape(a.shape[:-2])


def _size(x: np.ndarray) -> np.ndarray:
    """LAPACK chooses pivots by the sum of the parts, not by the modulus."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def permutation(pivots: np.ndarray, rows: int) -> np.ndarray:
    """Which row of A is in each row of LU."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    batch = np.arange(len(flat))
    order = np.broadcast_to(np.arange(rows), (len(flat), rows)).copy()
    for k in range(flat.shape[1]):
        chosen = flat[:, k] - 1
        kept = order[batch, chosen].copy()
        order[batch, chosen] = order[:, k]
        order[:, k] = kept
    return order.reshape(*pivots.shape[:-1], rows)


def permutation_matrix(pivots: np.ndarray, rows: int, dtype: np.dtype) -> np.ndarray:
    """P with A = P L U."""
    made = np.zeros((*pivots.shape[:-1], rows, rows), dtype)
    np.put_along_axis(made, permutation(pivots, rows)[..., None, :], 1, -2)
    return made


def unpack(lu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L, with its diagonal of ones, and U."""
    rows, columns = lu.shape[-2:]
    count = min(rows, columns)
    lower = np.tril(lu[..., :count], -1) + np.eye(rows, count, dtype=lu.dtype)
    return lower, np.triu(lu[..., :count, :])


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, left: bool, unitriangular: bool) -> np.ndarray:
    """X with AX = B, or XA = B, where only one triangle of A counts."""
    lead = a.shape[:-2]
    if lead != b.shape[:-2]:
        lead = np.broadcast_shapes(lead, b.shape[:-2])
    made_of = (*lead, *b.shape[-2:])
    if not b.size or not a.size or 0 in lead:
        return columns(made_of, b.dtype)
    regular = unitriangular or bool(np.all(np.diagonal(a, 0, -2, -1) != 0))
    few = a.shape[-1] >= LARGE or math.prod(lead) <= FEW
    if regular and few and a.dtype == b.dtype and lapack.has("trsm", b.dtype):
        return lapack.triangular(a, b, lead, upper, left, unitriangular)
    if not left:
        turned = solve_triangular(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not upper, True, unitriangular)
        return by_columns(np.swapaxes(turned, -1, -2))
    triangle = np.triu(a) if upper else np.tril(a)
    size = a.shape[-1]
    if unitriangular:
        triangle = np.where(np.eye(size, dtype=bool), np.ones((), a.dtype), triangle)
    if regular:
        made = loop("solve", "a", (made_of,), triangle, b)
        # NumPy before 2.0 takes right-hand sides of fewer dimensions for vectors.
        return made if made is not None else by_columns(
            np.linalg.solve(triangle, b.reshape((1,) * (triangle.ndim - b.ndim) + b.shape)))
    # A zero on the diagonal gives inf or nan, as the substitution does.
    x = columns(made_of, b.dtype)
    x[...] = b
    for k in (range(size - 1, -1, -1) if upper else range(size)):
        x[..., k, :] /= triangle[..., k, k, None]
        others = slice(0, k) if upper else slice(k + 1, None)
        x[..., others, :] -= triangle[..., others, k, None] * x[..., k, None, :]
    return x


def lu_solve(lu: np.ndarray, pivots: np.ndarray, b: np.ndarray, left: bool, adjoint_: bool) -> np.ndarray:
    """X with AX = B, or XA = B, or these with A's adjoint, for what `lu_factor` made of A."""
    if pivots.size and pivots.max() > lu.shape[-2]:
        raise RuntimeError("Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly "
                           "pass the result of lu_factor?")
    if not left:
        # X A = B is A^H X^H = B^H.
        turned = np.swapaxes(lu_solve(lu, pivots, adjoint(b), True, not adjoint_), -1, -2)
        return flipped(turned, conj=True) if turned.dtype.kind == "c" else turned
    order = permutation(pivots, lu.shape[-2])[..., None]
    if not adjoint_:
        shape = np.broadcast_shapes(order.shape[:-2], b.shape[:-2])
        turned = np.take_along_axis(np.broadcast_to(b, (*shape, *b.shape[-2:])),
                                    np.broadcast_to(order, (*shape, *order.shape[-2:])), -2)
        return solve_triangular(lu, solve_triangular(lu, turned, False, True, True), True, True, False)
    turned = adjoint(lu)
    made = solve_triangular(turned, solve_triangular(turned, b, False, True, False), True, True, True)
    back = np.broadcast_to(np.argsort(order, -2), (*made.shape[:-1], 1))
    return by_columns(np.take_along_axis(made, back, -2))


def cholesky_solve(b: np.ndarray, factor: np.ndarray, upper: bool) -> np.ndarray:
    """X with L L^H X = B, or U^H U X = B."""
    lower = adjoint(factor) if upper else factor
    middle = solve_triangular(lower, b, False, True, False)
    return solve_triangular(adjoint(lower), middle, True, True, False)


def cholesky_inverse(factor: np.ndarray, upper: bool) -> np.ndarray:
    """The inverse of the matrix that was factored."""
    zeros = np.diagonal(factor, 0, -2, -1) == 0
    if zeros.any():
        raise_first(np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0), SINGULAR_INVERSE, "cholesky_inverse")
    return cholesky_solve(np.broadcast_to(np.eye(factor.shape[-1], dtype=factor.dtype), factor.shape), factor, upper)


def eig(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors, always complex."""
    made = loop("eig", "cc", (None, a.shape), a)
    if made is not None:
        return made[0], made[1]
    values, vectors = np.linalg.eig(a)
    wanted = np.dtype(np.complex128 if (a.dtype.itemsize == 8 and a.dtype.kind == "f") or a.dtype == np.complex128
                      else np.complex64)
    return values.astype(wanted), by_columns(vectors.astype(wanted))


def geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The reflections of a QR decomposition below R, and their factors."""
    if lapack.has("geqrf", a.dtype) and a.size:
        return lapack.geqrf(a)
    reflections, tau = np.linalg.qr(a, mode="raw")
    return by_columns(np.swapaxes(reflections, -1, -2).astype(a.dtype)), tau.astype(a.dtype)


def householder_product(a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The first columns of the product of reflections."""
    if lapack.has("orgqr", a.dtype):
        return lapack.householder(a, tau)
    return _reflect(a, tau, np.broadcast_to(np.eye(*a.shape[-2:], dtype=a.dtype), a.shape), False)


def ormqr(a: np.ndarray, tau: np.ndarray, other: np.ndarray, left: bool, transpose: bool) -> np.ndarray:
    """The product of a matrix with all reflections, or with their adjoint."""
    if lapack.has("ormqr", a.dtype):
        return lapack.reflected(a, tau, other, left, transpose)
    # C Q is the adjoint of Q^H C^H.
    return _reflect(a, tau, other, transpose) if left else by_columns(
        adjoint(_reflect(a, tau, adjoint(other), not transpose)))


def _reflect(a: np.ndarray, tau: np.ndarray, x: np.ndarray, backwards: bool) -> np.ndarray:
    rows, count = a.shape[-2], tau.shape[-1]
    vectors = np.tril(a[..., :count], -1) + np.eye(rows, count, dtype=a.dtype)
    made = x
    for k in (range(count) if backwards else range(count - 1, -1, -1)):
        vector, factor = vectors[..., k:k + 1], tau[..., k, None, None]
        made = made - (factor.conj() if backwards else factor) * (vector @ (adjoint(vector) @ made))
    return by_columns(made)


def ldl_factor(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and D in one matrix, the exchanges of rows and columns, and the first zero on D's diagonal (or 0)."""
    made, pivots, infos = lapack.ldl(a, hermitian)
    np.copyto(made, 0, where=~np.tri(a.shape[-1], dtype=bool))
    return made, pivots, infos


def lstsq(a: np.ndarray, b: np.ndarray, rcond: float, driver: str) -> tuple[np.ndarray, ...]:
    """Least squares solutions, their residuals, the ranks and the singular values; empty where a driver has none."""
    rows, count = a.shape[-2:]
    if lapack.has(driver, a.dtype) and a.size and b.size:
        whole, ranks, values, infos = lapack.least_squares(a, b, rcond, driver)
    else:
        whole, ranks, values = _by_singular_values(a, b, rcond)
        poor = driver == "gels" and a.size and b.size
        infos = np.where(ranks < min(rows, count), ranks + 1, 0) if poor else np.zeros_like(ranks)
    raise_first(infos, RANK_DEFICIENT if driver == "gels" else NOT_CONVERGED)
    solution = whole[..., :count, :]
    full = rows > count and driver != "gelsy" and (driver == "gels" or bool(np.all(ranks == count)))
    residuals = (np.abs(a @ solution - b) ** 2).sum(-2) if full else np.empty(0, values.dtype)
    return (solution, residuals, np.empty(0, np.int64) if driver == "gels" else ranks.astype(np.int64),
            values if driver in ("gelsd", "gelss") else np.empty(0, values.dtype))


def _by_singular_values(a: np.ndarray, b: np.ndarray, rcond: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not a.size or not b.size:
        real = np.dtype(a.dtype.char.lower())
        made = columns((*a.shape[:-2], max(a.shape[-2:]), b.shape[-1]), a.dtype)
        made[...] = 0
        return made, np.zeros(a.shape[:-2], np.int64), np.zeros((*a.shape[:-2], min(a.shape[-2:])), real)
    u, s, vh = svd(a, False, True, None)
    kept = s > rcond * s.max(-1, keepdims=True)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0)
    made = by_columns(adjoint(vh) @ (inverse[..., None] * (adjoint(u) @ b)))
    return made, kept.sum(-1), s


# -- exponential -----------------------------------------------------------------------------------------------------

# The numerator of the approximant of degree 13 / 13; the denominator is the same with alternating signs.
PADE = (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
        10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0)
PADE_LIMIT = 5.371920351148152


def matrix_exp(a: np.ndarray) -> np.ndarray:
    """The exponential of each matrix, by scaling, a rational approximation and squaring."""
    size = a.shape[-1]
    if not a.size:
        return a.copy()
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x = a.astype(wide)
    norm = np.abs(x).sum(-2).max(-1)
    finite = np.isfinite(norm)
    steps = np.where(finite & (norm > PADE_LIMIT), np.ceil(np.log2(np.where(finite & (norm > 0), norm, 1.0)
                                                                  / PADE_LIMIT)), 0.0).astype(np.int64)
    steps = np.maximum(steps, 0)
    x = np.where(finite[..., None, None], x, 0.0) / (2.0 ** steps)[..., None, None]
    one = np.eye(size, dtype=wide)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b = PADE
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    made: Any = np.linalg.solve(even - odd, even + odd)
    for k in range(int(steps.max(initial=0))):
        made = np.where((steps > k)[..., None, None], made @ made, made)
    return np.where(finite[..., None, None], made, np.nan).astype(a.dtype)
