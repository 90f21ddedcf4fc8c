"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._autograd.grad_mode import no_grad
from .._dispatch.namespace import aten, public
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .binomial import Counted
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Counted):
    """The number of successes before `total_count` failures."""

    arg_constraints: ClassVar[Any] = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        super().__init__(self._take_counted(total_count, probs, logits), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * aten.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / aten.sigmoid(-self.logits)

    @lazy_property
    def _rates(self) -> Gamma:
        """The distribution of the rates whose Poisson counts these are."""
        return Gamma(self.total_count, aten.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Any:
        with no_grad():
            return public.poisson(self._rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        unnormalised = (self.total_count * aten.log_sigmoid(-self.logits) + value * aten.log_sigmoid(self.logits))
        normaliser = (-aten.lgamma(self.total_count + value) + aten.lgamma(1.0 + value)
                      + aten.lgamma(self.total_count))
        normaliser = normaliser.masked_fill(self.total_count + value == 0.0, 0.0)
        return unnormalised - normaliser
