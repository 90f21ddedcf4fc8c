"""Exponential families: entropy from the derivative of the log-normaliser."""

from __future__ import annotations

from typing import Any

from .._autograd.api import grad
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with density exp(<t(x), θ> - F(θ) + k(x)); a subclass gives θ as `_natural_params` and F."""

    @property
    def _natural_params(self) -> Any:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Any:
        """F(θ) - <θ, F'(θ)> less the mean of the carrier measure."""
        leaves = [p.detach().requires_grad_() for p in self._natural_params]
        normaliser = self._log_normalizer(*leaves)
        slopes = grad(normaliser.sum(), leaves, create_graph=True)
        result = -self._mean_carrier_measure + normaliser
        for parameter, slope in zip(leaves, slopes, strict=True):
            result = result - (parameter * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result
