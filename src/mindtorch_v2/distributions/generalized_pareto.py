"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Number
from typing import Any, ClassVar

from .._dispatch.namespace import aten, public
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Exceedances of a threshold `loc`: exponential for concentration 0, heavier tails above, bounded below."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }
    has_rsample = True
    expanded: ClassVar[Any] = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        numbers = all(isinstance(given, Number) for given in (loc, scale, concentration))
        super().__init__(Size() if numbers else self.loc.size(), validate_args=validate_args)

    def _shape(self) -> tuple[Any, Any]:
        """Where the concentration counts as 0, and the concentration with 1 there."""
        exponential = aten.isclose(self.concentration, aten.zeros_like(self.concentration))
        return exponential, aten.where(exponential, 1.0, self.concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From `loc` on, up to an end if the concentration is negative."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, aten.where(self.concentration < 0, end, math.inf))

    @property
    def mean(self) -> Any:
        finite = self.concentration < 1
        rest = 1 - aten.where(finite, self.concentration, 0.5)
        return aten.where(finite, self.loc + self.scale / rest, math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        finite = self.concentration < 0.5
        k = aten.where(finite, self.concentration, 0.25)
        return aten.where(finite, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Any:
        return self.icdf(public.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_survival_function(self, value: Tensor) -> Any:
        """The logarithm of the probability of more than `value`."""
        if self._validate_args:
            self._validate_sample(value)
        exponential, k = self._shape()
        z = (value - self.loc) / self.scale
        return aten.where(exponential, -z, -aten.log1p(k * z) / k)

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        exponential, k = self._shape()
        z = (value - self.loc) / self.scale
        power = 1 / k + 1
        # At concentration -1 the distribution is uniform, its end included.
        steep = aten.where(power == 0, 0.0, power * aten.log1p(k * z))
        return -aten.log(self.scale) - aten.where(exponential, z, steep)

    def log_cdf(self, value: Tensor) -> Any:
        """The logarithm of the probability of at most `value`."""
        return aten.log1p(-aten.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Any:
        return aten.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Any:
        exponential, k = self._shape()
        tail = aten.log1p(-value)
        return self.loc + self.scale * aten.where(exponential, -tail, aten.expm1(-k * tail) / k)

    def entropy(self) -> Any:
        return aten.broadcast_to(aten.log(self.scale) + self.concentration + 1, self._batch_shape)
