"""The continuous Bernoulli distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._autograd.grad_mode import no_grad
from .._dispatch.namespace import aten, public
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .bernoulli import BinaryParameter
from .exp_family import ExponentialFamily
from .utils import clamp_probs, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameter, ExponentialFamily):
    """Numbers between 0 and 1 with density proportional to exp(logits * x).

    Everything is written in the log-odds η; around η = 0, that is for probabilities within `lims`, where the formulas
    are 0/0, their series take over.
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
                 validate_args: bool | None = None) -> None:
        batch_shape = self._take(probs, logits)
        if probs is not None:
            if validate_args is not None and not constraints.unit_interval.check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.__dict__["probs"] = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        super()._expand_more(new, batch_shape)
        new._lims = self._lims

    @lazy_property
    def logits(self) -> Any:
        """Log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities, kept away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _split(self) -> tuple[Any, Any, Any]:
        """Where the formulas hold, the log-odds with 1 where they do not, and the log-odds."""
        far = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        eta = probs_to_logits(self.probs, is_binary=True)
        return far, aten.where(far, eta, 1.0), eta

    @staticmethod
    def _log_normaliser_of(far: Any, safe: Any, eta: Any) -> Any:
        """log of (exp(η) - 1) / η."""
        size = aten.abs(safe)
        formula = aten.clamp(safe, min=0) + aten.log1p(-aten.exp(-size)) - aten.log(size)
        return aten.where(far, formula, eta / 2 + eta**2 / 24 - eta**4 / 2880)

    @property
    def mean(self) -> Any:
        far, safe, eta = self._split()
        return aten.where(far, -1 / aten.expm1(-safe) - 1 / safe, 0.5 + eta / 12 - eta**3 / 720)

    @property
    def variance(self) -> Any:
        far, safe, eta = self._split()
        formula = 1 / safe**2 - 0.25 / aten.sinh(safe / 2) ** 2
        return aten.where(far, formula, 1 / 12 - eta**2 / 240 + eta**4 / 6048)

    @property
    def stddev(self) -> Any:
        return aten.sqrt(self.variance)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Any:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(public.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self.logits * value - self._log_normaliser_of(*self._split())

    def cdf(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        far, safe, _ = self._split()
        return aten.clamp(aten.where(far, aten.expm1(safe * value) / aten.expm1(safe), value), min=0, max=1)

    def icdf(self, value: Tensor) -> Any:
        far, safe, _ = self._split()
        return aten.where(far, aten.log1p(value * aten.expm1(safe)) / safe, value)

    def entropy(self) -> Any:
        far, safe, eta = self._split()
        return self._log_normaliser_of(far, safe, eta) - eta * self.mean

    @property
    def _natural_params(self) -> Any:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        eta = natural_params[0]
        far = aten.abs(eta) > 1e-3
        return self._log_normaliser_of(far, aten.where(far, eta, 1.0), eta)
