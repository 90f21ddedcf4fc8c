"""Mixtures of components of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._autograd.grad_mode import no_grad
from .._dispatch.namespace import aten
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Draws of a component, which a categorical distribution chooses; components are the last batch dimension."""

    arg_constraints: ClassVar[Any] = {}
    has_rsample = False

    def __init__(self, mixture_distribution: Any, component_distribution: Any,
                 validate_args: bool | None = None) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixed = mixture_distribution.batch_shape
        component = component_distribution.batch_shape[:-1]
        for size1, size2 in zip(reversed(mixed), reversed(component), strict=False):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                                 f"`component_distribution.batch_shape`({component})")
        chosen = mixture_distribution.logits.shape[-1]
        offered = component_distribution.batch_shape[-1]
        if chosen != offered:
            raise ValueError(f"`mixture_distribution component` ({chosen}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({offered})")
        self._num_component = chosen
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(component, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        batch_shape = Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        super(MixtureSameFamily, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        """The components'."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """What chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Any:
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *(1,) * self._event_ndims))

    @property
    def mean(self) -> Any:
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Any:
        # Variance within the components and variance of their means.
        weights, dim = self._weights(), -1 - self._event_ndims
        within = (weights * self.component_distribution.variance).sum(dim)
        between = (weights * (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)).sum(dim)
        return within + between

    def cdf(self, x: Tensor) -> Any:
        inner = self.component_distribution.cdf(self._pad(x))
        return (inner * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        inner = self.component_distribution.log_prob(self._pad(x))
        return aten.logsumexp(inner + aten.log_softmax(self.mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Any:
        with no_grad():
            sample_shape = Size(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = chosen.reshape((*chosen.shape, *(1,) * (self._event_ndims + 1)))
            index = index.repeat(*(1,) * (dim + 1), *self.event_shape)
            return aten.gather(drawn, dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Any:
        return x.unsqueeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
