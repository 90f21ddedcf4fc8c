"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any, ClassVar

from .._construct import as_tensor
from .._dispatch.namespace import aten
from .._dtype import finfo
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Waiting times for `concentration` events at a `rate`."""

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    expanded: ClassVar[Any] = {"concentration": 0, "rate": 0}
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        both_numbers = isinstance(concentration, Number) and isinstance(rate, Number)
        super().__init__(Size() if both_numbers else self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        value = aten._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor) -> Any:
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (aten.xlogy(self.concentration, self.rate) + aten.xlogy(self.concentration - 1, value)
                - self.rate * value - aten.lgamma(self.concentration))

    def entropy(self) -> Any:
        return (self.concentration - aten.log(self.rate) + aten.lgamma(self.concentration)
                + (1.0 - self.concentration) * aten.digamma(self.concentration))

    def cdf(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return aten.special_gammainc(self.concentration, self.rate * value)

    @property
    def _natural_params(self) -> Any:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x, y = natural_params
        return aten.lgamma(x + 1) + (x + 1) * aten.log(-y.reciprocal())
