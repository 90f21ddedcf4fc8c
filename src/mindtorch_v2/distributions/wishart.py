"""The Wishart distribution: covariance matrices of samples of normal vectors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from .._construct import tensor
from .._dispatch.namespace import aten, public
from .._dtype import finfo
from .._shape import Size, broadcast_shapes
from .._tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import factor_of_precision, half_log_determinant, solve_lower
from .utils import lazy_property

__all__ = ["Wishart"]


def multivariate_digamma(x: Tensor, size: int) -> Any:
    """The derivative of `mvlgamma`."""
    return aten.digamma(x.unsqueeze(-1) - aten.arange(size, dtype=x.dtype) / 2).sum(-1)


class Wishart(ExponentialFamily):
    """Positive definite matrices, by the degrees of freedom and exactly one of covariance, precision or Cholesky
    factor."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:
        """The degrees of freedom depend on the size."""
        return {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self._event_shape[-1] - 1)}

    def __init__(self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
                 validate_args: bool | None = None) -> None:
        matrices = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix,
                    "precision_matrix": precision_matrix}
        given = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, (int, float)):
            df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = Size(broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape)))
        self.df = df.expand(batch_shape) if df.dim() else df
        size = matrix.shape[-1]
        if bool((self.df <= size - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        self.__dict__[name] = matrix.expand((*batch_shape, *matrix.shape[-2:]))
        if bool((self.df < size).any()):
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < "
                          "ndim.", stacklevel=2)
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        if name == "scale_tril":
            self._factor = matrix
        elif name == "covariance_matrix":
            self._factor = aten.linalg_cholesky(matrix)
        else:
            self._factor = factor_of_precision(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch."""
        new = self._get_checked_instance(Wishart, _instance)
        shape = (*batch_shape, *self._event_shape)
        new._factor = self._factor.expand(shape)
        new.df = self.df.expand(batch_shape)
        for name in ("scale_tril", "covariance_matrix", "precision_matrix"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(shape)
        super(Wishart, new).__init__(Size(batch_shape), self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _full(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        return self._full(self._factor)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self._full(aten.matmul(self._factor, self._factor.mT))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        inverse = solve_lower(self._factor, aten.eye(self._factor.shape[-1], dtype=self._factor.dtype))
        return self._full(aten.matmul(inverse.mT, inverse))

    def _freedom(self) -> Any:
        """The degrees of freedom, to be multiplied with matrices."""
        return self.df.reshape((*self.df.shape, 1, 1))

    @property
    def mean(self) -> Any:
        return self._freedom() * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self._freedom() - self._event_shape[-1] - 1
        return aten.where(factor <= 0, math.nan, factor) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        matrix = self.covariance_matrix
        diagonal = aten.diagonal(matrix, 0, -2, -1)
        return self._freedom() * (matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _drawn(self, sample_shape: Sequence[int]) -> Any:
        """Bartlett's decomposition: a triangular matrix of normal numbers with roots of chi-squared ones before."""
        size = self._event_shape[-1]
        kind = self._factor.dtype
        freedom = self.df.unsqueeze(-1) - aten.arange(size, dtype=kind).expand((*self._batch_shape, size))
        roots = Chi2(freedom).rsample(sample_shape).sqrt()
        noise = aten.diag_embed(roots.clamp(min=finfo(kind).eps))
        rows, columns = aten.tril_indices(size, size, -1)
        below = (*sample_shape, *self._batch_shape, size * (size - 1) // 2)
        noise[..., rows, columns] = public.randn(below, dtype=kind)
        factor = aten.matmul(self._factor, noise)
        return aten.matmul(factor, factor.mT)

    def rsample(self, sample_shape: Sequence[int] = Size(), max_try_correction: int | None = None) -> Any:
        """Draw; matrices that rounding has made singular are drawn again, a few times.

        PyTorch takes its first draw for singular where it is not, and draws again: with the same seed, the same numbers
        come only this way.
        """
        tries = (3 if len(self._batch_shape) else 10) if max_try_correction is None else max_try_correction
        sample = self._drawn(sample_shape)
        again = self._any_of_batch(self.support.check(sample))
        if bool(again.any()):
            warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(tries):
            if not bool(again.any()):
                break
            new = self._drawn(Size([int(again.sum())]))
            sample[again] = new
            again[again.clone()] = self._any_of_batch(aten.logical_not(self.support.check(new)))
        return sample

    def _any_of_batch(self, found: Any) -> Any:
        return found.amax([-1 - place for place in range(len(self._batch_shape))]) if len(self._batch_shape) else found

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        size = self._event_shape[-1]
        half = self.df / 2
        white = solve_lower(self._factor, aten.linalg_cholesky(value))
        return (-half * (size * math.log(2) + 2 * half_log_determinant(self._factor)) - aten.mvlgamma(half, size)
                + (self.df - size - 1) / 2 * aten.linalg_slogdet(value)[1] - white.pow(2).sum((-2, -1)) / 2)

    def entropy(self) -> Any:
        size = self._event_shape[-1]
        half = self.df / 2
        return ((size + 1) * (half_log_determinant(self._factor) + size * math.log(2) / 2) + aten.mvlgamma(half, size)
                - (self.df - size - 1) / 2 * multivariate_digamma(half, size) + self.df * size / 2)

    @property
    def _natural_params(self) -> Any:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        return half * (size * math.log(2) - aten.linalg_slogdet(-2 * x)[1]) + aten.mvlgamma(half, size)
