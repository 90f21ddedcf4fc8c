"""Kernels of linear algebra, most of them on LAPACK through np.linalg."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np

from . import blas, providers
from .columns import by_columns, columns, loop

SINGULAR_INVERSE = ("{2}: {0}The diagonal element {1} is zero, the inversion could not be completed because the "
                    "input matrix is singular.")
SINGULAR_SOLVE = "torch.linalg.solve: {0}The solver failed because the input matrix is singular."
NOT_FINITE = "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
NOT_CONVERGED = ("{2}: {0}The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                 "repeated eigenvalues (error code: {1}).")
NOT_POSITIVE = ("{2}: {0}The factorization could not be completed because the input is not "
                "positive-definite (the leading minor of order {1} is not positive-definite).")


class LinAlgError(RuntimeError):
    """A matrix does not allow what was asked for."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # PyTorch's name of this error
LinAlgError.__module__ = "torch._C"


LARGE = 32  # from this many rows on, a Python call per matrix of a batch costs little

def det(a: np.ndarray) -> np.ndarray:
    """Determinants."""
    # A transposed matrix has the same determinant, and LAPACK reads columns.
    made = blas.lu(np.swapaxes(a, -1, -2)) if a.shape[-1] >= LARGE else None
    if made is None:
        return np.linalg.det(a)
    lu, pivots, _ = made
    exchanges = np.count_nonzero(pivots != np.arange(1, a.shape[-1] + 1), axis=-1)
    with np.errstate(all="ignore"):
        product: np.ndarray = np.diagonal(lu, 0, -2, -1).prod(-1) * (1 - 2 * (exchanges % 2)).astype(a.dtype)
    return product


def slogdet(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The signs of the determinants and the logarithms of their sizes."""
    sign, size = loop("slogdet", "ar", (None, None), a) or np.linalg.slogdet(a)
    # A determinant that is not a number has no sign.
    return sign if a.dtype.kind == "c" else np.where(np.isnan(size), sign.dtype.type(0), sign), size


def _inv(a: np.ndarray) -> np.ndarray:
    made = loop("inv", "a", (a.shape,), a)
    return by_columns(np.linalg.inv(a)) if made is None else made


def _solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lead = b.shape[:-2] if a.shape[:-2] == b.shape[:-2] else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    made = loop("solve", "a", ((*lead, *b.shape[-2:]),), a, b) if b.dtype == a.dtype and b.size else None
    # NumPy before 2.0 takes right-hand sides of fewer dimensions for vectors.
    return by_columns(np.linalg.solve(a, b.reshape((1,) * (a.ndim - b.ndim) + b.shape))) if made is None else made


def adjoint(a: np.ndarray) -> np.ndarray:
    """The conjugate transpose of each matrix."""
    turned = np.swapaxes(a, -1, -2)
    return turned.conj() if a.dtype.kind == "c" else turned


def first_zero_pivot(matrix: np.ndarray) -> int:
    """Which diagonal element of U is zero (from 1) in LU with row exchanges; 0 if none. Only for error messages."""
    u = matrix.copy()
    for column in range(len(u)):
        pivot = column + int(np.argmax(np.abs(u[column:, column])))
        if u[pivot, column] == 0:
            return column + 1
        u[[column, pivot]] = u[[pivot, column]]
        u[column + 1:] -= np.outer(u[column + 1:, column] / u[column, column], u[column])
    return 0


def first_bad_minor(matrix: np.ndarray) -> int:
    """The order of the first leading minor that is not positive definite; 0 if none. Only for error messages."""
    for order in range(1, len(matrix) + 1):
        try:
            _cholesky(matrix[:order, :order])
        except np.linalg.LinAlgError:
            return order
    return 0


def infos_of(a: np.ndarray, diagnose: Any) -> np.ndarray:
    """The diagnosis of every matrix, after LAPACK has refused at least one of them."""
    flat = a.reshape(-1, *a.shape[-2:])
    return np.array([diagnose(matrix) for matrix in flat], np.int32).reshape(a.shape[:-2])


def raise_first(infos: np.ndarray, text: str, name: str = "") -> None:
    """Raise for the first matrix with a diagnosis, if there is one; `name` is the function that was called."""
    bad = np.flatnonzero(infos)
    if bad.size:
        where = f"(Batch element {bad[0]}): " if infos.ndim else ""
        raise LinAlgError(text.format(where, infos.reshape(-1)[bad[0]], name))


def inv_ex(a: np.ndarray, check_errors: bool, name: str = "linalg.inv_ex") -> tuple[np.ndarray, np.ndarray]:
    """Inverses, and what was wrong with each matrix."""
    try:
        return _inv(a), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        infos = infos_of(a, first_zero_pivot)
    if check_errors:
        raise_first(infos, SINGULAR_INVERSE, name)
    # Singular matrices get NaN, and so do those with NaN; the others get the same result as alone.
    good = (infos == 0) & ~np.isnan(a).any((-2, -1))
    made = columns(a.shape, a.dtype)
    made[...] = np.nan
    made[good] = _inv(a[good])
    return made, infos


def _cholesky(a: np.ndarray) -> np.ndarray:
    made = loop("cholesky_lo", "a", (a.shape,), a)
    if made is None:
        made = by_columns(np.linalg.cholesky(a))
    if np.isnan(np.diagonal(made, 0, -2, -1)).any():  # not every LAPACK refuses these
        raise np.linalg.LinAlgError("a leading minor is not positive definite")
    return made


@providers.direct("cholesky_ex")
def cholesky_ex(a: np.ndarray, upper: bool, check_errors: bool,
                name: str = "linalg.cholesky_ex") -> tuple[np.ndarray, np.ndarray]:
    """Cholesky factors, and what was wrong with each matrix."""
    source = adjoint(a) if upper else a
    try:
        factor = _cholesky(source)
        infos = np.zeros(a.shape[:-2], np.int32)
        # NaN spreads to the last row.
        if factor.size and np.isnan(factor[..., -1, -1]).any():
            bad = np.isnan(np.diagonal(factor, 0, -2, -1))
            infos = np.where(bad.any(-1), bad.argmax(-1) + 1, 0).astype(np.int32)
            if check_errors:
                raise_first(infos, NOT_POSITIVE, name)
    except np.linalg.LinAlgError:
        infos = infos_of(source, first_bad_minor)
        if check_errors:
            raise_first(infos, NOT_POSITIVE, name)
        good = infos == 0
        factor = columns(a.shape, a.dtype)
        factor[...] = np.nan
        factor[good] = _cholesky(source[good])
    return (by_columns(adjoint(factor)) if upper else factor), infos


def is_vector(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether the right-hand side of a batch of equations of this shape is a batch of vectors."""
    return len(b) == 1 or b == a[:-1]


def solve(a: np.ndarray, b: np.ndarray, left: bool, check_errors: bool) -> np.ndarray:
    """X with AX = B, or XA = B if not `left`; `b` holds matrices or, by the rule of `is_vector`, vectors."""
    try:
        if is_vector(a.shape, b.shape):
            made = _solve(a, b[..., None])[..., 0]
            return by_columns(made) if made.ndim > 1 else made
        if left:
            return _solve(a, b)
        return np.swapaxes(_solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
    except np.linalg.LinAlgError:
        if check_errors:
            raise_first(infos_of(a, first_zero_pivot), SINGULAR_SOLVE)
        undefined = np.isnan(a).any((-2, -1))  # LAPACK takes some of these for singular
        if not undefined.any():
            raise
    regular = np.where(undefined[..., None, None], np.eye(a.shape[-1], dtype=a.dtype), a)
    shown = undefined[..., None] if is_vector(a.shape, b.shape) else undefined[..., None, None]
    made = solve(regular, b, left, check_errors)
    np.copyto(made, np.nan, where=shown)
    return made


def _qr_in_c(a: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    *lead, rows, count = a.shape
    batch, inner = math.prod(lead), rows if mode == "complete" else min(rows, count)
    q = None if mode == "r" else np.empty((batch, inner, rows), a.dtype)
    r = np.empty((batch, count, inner), a.dtype)
    providers.native.qr(a.copy("C").reshape(batch, rows, count), q, r)
    made = np.swapaxes(r.reshape(*lead, count, inner), -1, -2)
    return (np.empty(0, a.dtype) if q is None else np.swapaxes(q.reshape(*lead, inner, rows), -1, -2)), made


@providers.direct("qr")
def qr(a: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Q and R; Q is empty in mode "r"."""
    if providers.factors(a):
        return _qr_in_c(a, mode)
    if mode == "r":
        return np.empty(0, a.dtype), by_columns(np.linalg.qr(a, "r"))
    q, r = np.linalg.qr(a, mode)  # type: ignore[call-overload]
    return by_columns(q), by_columns(r)


def svd(a: np.ndarray, full_matrices: bool, compute_uv: bool, driver: Any) -> tuple[np.ndarray, ...]:
    """U, S and the adjoint of V; U and V are empty unless asked for."""
    if not compute_uv:
        try:
            made = loop("svd", "r", (None,), a)
            values = np.linalg.svd(a, compute_uv=False) if made is None else made
        except np.linalg.LinAlgError:
            if np.isfinite(a).all():
                raise
            raise LinAlgError(NOT_FINITE) from None
        return np.empty(0, a.dtype), values, np.empty(0, a.dtype)
    # A sum is cheaper to look at than each number; it is finite only if they all are.
    if not cmath.isfinite(np.add.reduce(a, None)) and not np.isfinite(a).all():
        raise LinAlgError(NOT_FINITE)
    *lead, rows, count = a.shape
    left, right = (rows, count) if full_matrices else (min(rows, count),) * 2
    made = loop("svd_f" if full_matrices else "svd_s", "ara", ((*lead, rows, left), None, (*lead, right, count)), a)
    if made is None:
        u, s, vh = np.linalg.svd(a, full_matrices)
        made = by_columns(u), s, by_columns(vh)
    return tuple(made)


def eigh(a: np.ndarray, uplo: str, compute_v: bool) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues in ascending order and eigenvectors, which are empty unless asked for."""
    side = "lo" if uplo in ("L", "l") else "up"
    try:
        if not compute_v:
            made = loop(f"eigvalsh_{side}", "r", (None,), a)
            return np.linalg.eigvalsh(a, uplo) if made is None else made, np.empty(0, a.dtype)  # type: ignore[arg-type]
        made = loop(f"eigh_{side}", "ra", (None, a.shape), a)
        values, vectors = np.linalg.eigh(a, uplo) if made is None else made  # type: ignore[arg-type]
    except np.linalg.LinAlgError:
        raise_first(infos_of(a, lambda one: int(not np.isfinite(one).all())), NOT_CONVERGED, "linalg.eigh")
        raise
    return values, vectors if made is not None else by_columns(vectors)


def pinv(a: np.ndarray, atol: Any, rtol: Any, hermitian: bool) -> np.ndarray:
    """Pseudo-inverses; singular values up to max(atol, rtol * largest) count as zero."""
    if not a.size:
        return np.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    limit_low, limit_relative = tolerances(a, atol, rtol)
    if hermitian:
        values, vectors = eigh(a, "L", True)
        size = np.abs(values)
        limit = np.maximum(limit_low, limit_relative * size.max(-1))[..., None]
        inverse = np.where(size > limit, 1 / values, 0)
        return (vectors * inverse[..., None, :]) @ adjoint(vectors)
    u, s, vh = svd(a, False, True, None)
    limit = np.maximum(limit_low, limit_relative * s.max(-1))[..., None]
    inverse = np.where(s > limit, 1 / s, 0).astype(s.dtype)
    return adjoint(vh) @ (inverse[..., None] * adjoint(u))


def tolerances(a: np.ndarray, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Absolute and relative limits: eps times the larger extent unless one of them is given."""
    low = 0.0 if atol is None else atol
    if rtol is not None:
        return low, rtol
    given = atol is not None and np.any(np.asarray(atol) > 0)
    return low, 0.0 if given else float(np.finfo(a.dtype).eps) * max(a.shape[-2:])
