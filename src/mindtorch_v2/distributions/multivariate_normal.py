"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._shape import Size, broadcast_shapes
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def batch_product(matrices: Any, vectors: Any) -> Any:
    """Matrices times vectors, both batched."""
    return aten.matmul(matrices, vectors.unsqueeze(-1)).squeeze(-1)


def solve_lower(factor: Any, right: Any) -> Any:
    """`factor^-1 right`, batched, for lower triangular factors."""
    shape = broadcast_shapes(tuple(factor.shape[:-2]), tuple(right.shape[:-2]))
    return aten.linalg_solve_triangular(factor.expand((*shape, *factor.shape[-2:])),
                                        right.expand((*shape, *right.shape[-2:])), upper=False)


def half_log_determinant(factor: Any) -> Any:
    """Half the log-determinant of the matrix whose Cholesky factor is given."""
    return aten.diagonal(factor, 0, -2, -1).log().sum(-1)


def mahalanobis(factor: Any, away: Any) -> Any:
    """Squared lengths of `factor^-1 away`, batched.

    A factor solves for all vectors that belong to it at once: each dimension of the batch is split into what the
    factors have of it and how often they are repeated along it, and the repetitions become columns.
    """
    size, batch = away.shape[-1], tuple(away.shape[:-1])
    factors = tuple(factor.shape[:-2])
    outer = len(batch) - len(factors)
    split = [part for have, wanted in zip(factors, batch[outer:], strict=True) for part in (wanted // have, have)]
    last = outer + 2 * len(factors)
    repeats, owned = list(range(outer, last, 2)), list(range(outer + 1, last, 2))
    apart = away.reshape((*batch[:outer], *split, size)).permute((*range(outer), *repeats, *owned, last))
    flat = factor.reshape((-1, size, size))
    columns = apart.reshape((-1, flat.shape[0], size)).permute((1, 2, 0))
    lengths = aten.linalg_solve_triangular(flat, columns, upper=False).pow(2).sum(-2).t().reshape(apart.shape[:-1])
    order = [d for pair in zip(range(outer, outer + len(factors)), range(outer + len(factors), last)) for d in pair]
    return lengths.permute((*range(outer), *order)).reshape(batch)


def factor_of_precision(precision: Any) -> Any:
    """The Cholesky factor of the inverse: that of the reversed matrix, inverted, is triangular the right way."""
    flipped = aten.linalg_cholesky(aten.flip(precision, (-2, -1)))
    inverse = aten.transpose(aten.flip(flipped, (-2, -1)), -2, -1)
    identity = aten.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device).expand(precision.shape)
    return aten.tril(aten.linalg_solve(inverse, identity))


class MultivariateNormal(Distribution):
    """Normal vectors, by exactly one of covariance, precision or lower Cholesky factor."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    expanded: ClassVar[Any] = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2,
                "scale_tril": 2}

    def __init__(self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
                 validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix,
                    "precision_matrix": precision_matrix}
        given = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            shown = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{shown} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.__dict__[name] = matrix.expand((*batch_shape, *matrix.shape[-2:]))
        self.loc = loc.expand((*batch_shape, loc.shape[-1]))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = aten.linalg_cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = factor_of_precision(matrix)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    def _full(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        return self._full(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._full(aten.matmul(factor, factor.mT))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        identity = aten.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device).expand(factor.shape)
        inverse = aten.linalg_solve(factor, identity)
        return self._full(aten.matmul(inverse.mT, inverse))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Any:
        drawn = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + batch_product(self._unbroadcasted_scale_tril, drawn)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        halved = half_log_determinant(self._unbroadcasted_scale_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - halved

    def entropy(self) -> Any:
        size = self._event_shape[0]
        made = 0.5 * size * (1.0 + math.log(2 * math.pi)) + half_log_determinant(self._unbroadcasted_scale_tril)
        return made.expand(self._batch_shape) if len(self._batch_shape) else made
