"""Matrices with known properties for tests of linear algebra: parts of `common_utils`."""

from __future__ import annotations

import math
from typing import Any

from ..._dispatch.namespace import aten
from ..._dtype import dtype, float64
from ..._tensor import Tensor

__all__ = ["make_fullrank_matrices_with_distinct_singular_values", "make_symmetric_matrices",
           "make_symmetric_pd_matrices", "random_hermitian_matrix", "random_hermitian_pd_matrix",
           "random_hermitian_psd_matrix", "random_lowrank_matrix", "random_matrix", "random_sparse_matrix",
           "random_sparse_pd_matrix", "random_square_matrix_of_rank", "random_symmetric_matrix",
           "random_symmetric_pd_matrix", "random_symmetric_psd_matrix", "random_well_conditioned_matrix"]


def _normal(*shape: int, dtype: dtype = float64, device: Any = "cpu") -> Any:
    return aten.randn(shape, dtype=dtype, device=device)


def _with_values(vectors: Any, values: Any) -> Any:
    """The matrix of the same singular vectors with other singular values."""
    left, _, right = aten.linalg_svd(vectors, full_matrices=False)
    return (left * values.to(left.dtype)) @ right


def random_matrix(rows: int, columns: int, *batch_dims: int, dtype: dtype = float64, device: Any = "cpu",
                  singular: bool = False, silent: bool = False) -> Any:
    """A matrix whose singular values are far apart; `singular` ones have a zero among them."""
    full = _normal(*batch_dims, rows, columns, dtype=dtype, device=device)
    if full.numel() == 0:
        return full
    count = min(rows, columns)
    values = aten.linspace(1 / (count + 1), 1, count, dtype=full.real.dtype, device=device)
    if singular:
        values = values.clone()
        values[0] = 0
    return _with_values(full, values)


def random_square_matrix_of_rank(l: int, rank: int, dtype: dtype = float64, device: Any = "cpu") -> Any:
    """A square matrix of a rank."""
    if rank > l:
        raise AssertionError(f"a matrix of size {l} has no rank {rank}")
    return random_lowrank_matrix(rank, l, l, dtype=dtype, device=device)


def random_lowrank_matrix(rank: int, rows: int, columns: int, *batch_dims: int, dtype: dtype = float64,
                          device: Any = "cpu") -> Any:
    """A product of a high and a wide matrix."""
    options = {"dtype": dtype, "device": device}
    return random_matrix(rows, rank, *batch_dims, **options) @ random_matrix(rank, columns, *batch_dims, **options)


def random_well_conditioned_matrix(*shape: int, dtype: dtype, device: Any, mean: float = 1.0,
                                   sigma: float = 0.001) -> Any:
    """A matrix whose singular values lie close to `mean`."""
    full = _normal(*shape, dtype=dtype, device=device)
    count = min(shape[-2:])
    values = aten.randn((*shape[:-2], 1, count), dtype=full.real.dtype, device=device) * math.sqrt(sigma) + mean
    return _with_values(full, values)


def make_fullrank_matrices_with_distinct_singular_values(*shape: int, device: Any, dtype: dtype,
                                                         requires_grad: bool = False) -> Any:
    """Matrices whose singular values are about one, and all different."""
    full = _normal(*shape, dtype=dtype, device=device)
    count = min(shape[-2:])
    if full.numel():
        signs = (-1.0) ** aten.arange(count, dtype=full.real.dtype, device=device)
        full = _with_values(full, 1 + signs * aten.arange(2, count + 2, dtype=full.real.dtype, device=device)
                            .reciprocal())
    return full.detach().requires_grad_(requires_grad)


def random_symmetric_matrix(l: int, *batches: int, dtype: dtype = float64, device: Any = "cpu") -> Any:
    """Equal to its transpose."""
    full = _normal(*batches, l, l, dtype=dtype, device=device)
    return (full + full.mT).div_(2)


def random_hermitian_matrix(l: int, *batches: int, dtype: dtype = float64, device: Any = "cpu") -> Any:
    """Equal to its conjugate transpose."""
    full = _normal(*batches, l, l, dtype=dtype, device=device)
    return (full + full.mH).div_(2)


def random_symmetric_psd_matrix(l: int, *batches: int, dtype: dtype = float64, device: Any = "cpu") -> Any:
    """No negative eigenvalues."""
    full = _normal(*batches, l, l, dtype=dtype, device=device)
    return full @ full.mT


def random_hermitian_psd_matrix(l: int, *batches: int, dtype: dtype = float64, device: Any = "cpu") -> Any:
    """No negative eigenvalues."""
    full = _normal(*batches, l, l, dtype=dtype, device=device)
    return full @ full.mH


def random_symmetric_pd_matrix(l: int, *batches: int, dtype: dtype = float64, device: Any = "cpu") -> Any:
    """Positive eigenvalues, well away from zero."""
    return random_symmetric_psd_matrix(l, *batches, dtype=dtype, device=device) + aten.eye(
        l, dtype=dtype, device=device) * 1e-5


def random_hermitian_pd_matrix(matrix_size: int, *batch_dims: int, dtype: dtype, device: Any) -> Any:
    """Positive eigenvalues, well away from zero."""
    return random_hermitian_psd_matrix(matrix_size, *batch_dims, dtype=dtype, device=device) + aten.eye(
        matrix_size, dtype=dtype, device=device)


def make_symmetric_matrices(*shape: int, device: Any, dtype: dtype) -> Any:
    """Equal to their transposes; the shape names the batch too."""
    _square(shape)
    return random_symmetric_matrix(shape[-1], *shape[:-2], dtype=dtype, device=device)


def make_symmetric_pd_matrices(*shape: int, device: Any, dtype: dtype) -> Any:
    """Positive eigenvalues; the shape names the batch too."""
    _square(shape)
    full = _normal(*shape, dtype=dtype, device=device)
    return full @ full.mT + aten.eye(shape[-1], dtype=dtype, device=device) * 1e-5


def _square(shape: tuple[int, ...]) -> None:
    if shape[-1] != shape[-2]:
        raise AssertionError(f"square matrices are wanted, got shape {shape}")


def random_sparse_matrix(rows: int, columns: int, density: float = 0.01, dtype: dtype = float64,
                         device: Any = "cpu", singular: bool = False) -> Any:
    """A sparse matrix with about so many elements, and a diagonal."""
    count = max(min(rows, columns), int(rows * columns * density))
    places = [aten.cat([aten.arange(count, device=device) % size, aten.randint(0, size, (count,), device=device)])
              for size in (rows, columns)]
    values = _normal(2 * count, dtype=dtype, device=device)
    values *= aten.linspace(1, 2, 2 * count, dtype=values.real.dtype, device=device)
    return aten.sparse_coo_tensor(aten.stack(places), values, (rows, columns)).coalesce()


def random_sparse_pd_matrix(matrix_size: int, density: float = 0.01, dtype: dtype = float64,
                            device: Any = "cpu") -> Any:
    """A sparse matrix with positive eigenvalues: a sparse one times its transpose, and something on the diagonal."""
    half: Tensor = random_sparse_matrix(matrix_size, matrix_size, density, dtype=dtype, device=device)
    dense: Any = half.to_dense()
    return (dense @ dense.mH + aten.eye(matrix_size, dtype=dtype, device=device)).to_sparse()
