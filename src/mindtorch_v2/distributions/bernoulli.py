"""The Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any, ClassVar

from .._autograd.grad_mode import no_grad
from .._dispatch.namespace import aten, public
from .._dtype import float32
from .._shape import Size
from .._tensor import Tensor
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Bernoulli", "BinaryParameter"]


class BinaryParameter(Distribution):
    """Base of distributions of one probability, given as `probs` or as `logits`."""

    _param: Any
    expanded: ClassVar[Any] = {"probs": 0, "logits": 0}

    def _take(self, probs: Any, logits: Any) -> Size:
        """Keep the one that is given; returns the batch's shape."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = logits if probs is None else probs
        (value,) = broadcast_all(given)
        self.__dict__["logits" if probs is None else "probs"] = value
        self._param = value
        return Size() if isinstance(given, Number) else value.size()

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._param = new.__dict__["probs"] if "probs" in new.__dict__ else new.__dict__["logits"]

    @lazy_property
    def logits(self) -> Any:
        """Log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()


class Bernoulli(BinaryParameter, ExponentialFamily):
    """1 with a probability, else 0."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        chosen = (self.probs >= 0.5).to(self.probs)
        return aten.where(self.probs == 0.5, float("nan"), chosen)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Any:
        with no_grad():
            return public.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        values = aten.arange(2, dtype=self._param.dtype or float32, device=self._param.device)
        values = values.view((-1, *(1,) * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> Any:
        return (aten.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        return aten.log1p(aten.exp(natural_params[0]))
