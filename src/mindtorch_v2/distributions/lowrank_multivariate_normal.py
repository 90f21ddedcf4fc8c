"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .multivariate_normal import batch_product, half_log_determinant, solve_lower
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance `cov_factor @ cov_factor.mT + diag(cov_diag)`.

    Only a matrix of the factor's rank is factorised, the capacitance I + Wᵀ D⁻¹ W (Woodbury's identity).
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    expanded: ClassVar[Any] = {"loc": 1, "cov_factor": 2, "cov_diag": 1}

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            places, self.cov_factor, widths = aten.broadcast_tensors(
                [loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)])
        except RuntimeError as error:
            raise ValueError(f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag "
                             f"{cov_diag.shape}") from error
        self.loc, self.cov_diag = places[..., 0], widths[..., 0]
        self._factor, self._diagonal = cov_factor, cov_diag
        weighted = cov_factor.mT / cov_diag.unsqueeze(-2)
        identity = aten.eye(cov_factor.size(-1), dtype=cov_factor.dtype, device=cov_factor.device)
        self._capacitance_tril = aten.linalg_cholesky(aten.matmul(weighted, cov_factor) + identity)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._factor, new._diagonal = self._factor, self._diagonal
        new._capacitance_tril = self._capacitance_tril

    def _full(self, matrix: Any) -> Any:
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """The diagonal of the covariance."""
        made = self._factor.pow(2).sum(-1) + self._diagonal
        return made.expand((*self._batch_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance, by way of a matrix whose eigenvalues are at least 1."""
        root = self._diagonal.sqrt().unsqueeze(-1)
        scaled = self._factor / root
        identity = aten.eye(self._event_shape[0], dtype=scaled.dtype, device=scaled.device)
        return self._full(root * aten.linalg_cholesky(aten.matmul(scaled, scaled.mT) + identity))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self._full(aten.matmul(self._factor, self._factor.mT) + aten.diag_embed(self._diagonal))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        solved = solve_lower(self._capacitance_tril, self._factor.mT / self._diagonal.unsqueeze(-2))
        return self._full(aten.diag_embed(self._diagonal.reciprocal()) - aten.matmul(solved.mT, solved))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        low = _standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype)
        own = _standard_normal(shape, self.loc.dtype)
        return self.loc + batch_product(self._factor, low) + self._diagonal.sqrt() * own

    def _log_determinant(self) -> Any:
        return 2 * half_log_determinant(self._capacitance_tril) + self._diagonal.log().sum(-1)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        weighted = batch_product(self._factor.mT / self._diagonal.unsqueeze(-2), away)
        inside = solve_lower(self._capacitance_tril, weighted.unsqueeze(-1)).squeeze(-1).pow(2).sum(-1)
        distance = (away.pow(2) / self._diagonal).sum(-1) - inside
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_determinant() + distance)

    def entropy(self) -> Any:
        made = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_determinant())
        return made.expand(self._batch_shape) if len(self._batch_shape) else made
