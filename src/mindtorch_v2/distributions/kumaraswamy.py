"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from .._dispatch.namespace import aten
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1, like those of a beta distribution but with a simple distribution function."""

    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    expanded: ClassVar[Any] = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(aten.full_like(self.concentration0, 0), aten.full_like(self.concentration0, 1),
                       validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                      PowerTransform(exponent=self.concentration1.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Any:
        """The mean of the n-th power."""
        share = 1 + n / self.concentration1
        return aten.exp(aten.lgamma(share) + self.concentration0.log() + aten.lgamma(self.concentration0)
                        - aten.lgamma(share + self.concentration0))

    @property
    def mean(self) -> Any:
        return self._moment(1)

    @property
    def mode(self) -> Any:
        inner = (-self.concentration0).log1p() - (-self.concentration0 * self.concentration1).log1p()
        mode = (self.concentration1.reciprocal() * inner).exp()
        none = (self.concentration0 < 1) | (self.concentration1 < 1)
        return aten.where(none, float("nan"), mode)

    @property
    def variance(self) -> Any:
        return self._moment(2) - self.mean.pow(2)

    def entropy(self) -> Any:
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = aten.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * harmonic - aten.log(self.concentration1) - aten.log(self.concentration0)
