"""The multinomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._autograd.grad_mode import no_grad
from .._construct import tensor
from .._dispatch.namespace import aten, public
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each category comes up among `total_count` draws."""

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Multinomial, _instance)
        batch_shape = Size(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = Binomial(total_count=self.total_count, probs=new.probs)
        super(Multinomial, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that add up to the total."""
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Any:
        """Normalised log-probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Any:
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample(Size((self.total_count, *sample_shape)))
            drawn = drawn.permute(*range(1, drawn.dim()), 0)
            counts = public.empty(self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device).zero_()
            counts.scatter_add_(-1, drawn, aten.ones_like(drawn))
            return counts.type_as(self.probs)

    def entropy(self) -> Any:
        n = tensor(self.total_count, device=self.logits.device)
        draws = n * self._categorical.entropy() - aten.lgamma(n + 1)
        support = self._binomial.enumerate_support(expand=False)[1:]
        weights = aten.exp(self._binomial.log_prob(support)) * aten.lgamma(support + 1)
        return draws + weights.sum((0, -1))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = aten.clone(logits)
        ways = aten.lgamma(value.sum(-1) + 1)
        repeats = aten.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -float("inf"))] = 0
        chosen = (logits * value).sum(-1)
        return ways - repeats + chosen
