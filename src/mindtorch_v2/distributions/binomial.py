"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._autograd.grad_mode import no_grad
from .._dispatch.namespace import aten, public
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .bernoulli import BinaryParameter
from .utils import broadcast_all

__all__ = ["Binomial", "Counted"]


class Counted(BinaryParameter):
    """Base of distributions of a probability and a `total_count`."""

    total_count: Any
    expanded: ClassVar[Any] = {"total_count": 0, "probs": 0, "logits": 0}

    def _take_counted(self, total_count: Any, probs: Any, logits: Any) -> Size:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name = "logits" if probs is None else "probs"
        self.total_count, self._param = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = self.total_count.type_as(self._param)
        self.__dict__[name] = self._param
        return self._param.size()


class Binomial(Counted):
    """The number of successes among `total_count` trials."""

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        super().__init__(self._take_counted(total_count, probs, logits), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The whole numbers up to the count."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return public.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        # log(1 - p) = -max(logits, 0) - log(1 + exp(-|logits|)), which keeps large logits finite.
        log_all = aten.lgamma(self.total_count + 1)
        log_successes = aten.lgamma(value + 1)
        log_failures = aten.lgamma(self.total_count - value + 1)
        positive = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        scale = (self.total_count * positive + self.total_count * aten.log1p(aten.exp(-aten.abs(self.logits)))
                 - log_all)
        return value * self.logits - log_successes - log_failures - scale

    def entropy(self) -> Any:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(aten.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = aten.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values
