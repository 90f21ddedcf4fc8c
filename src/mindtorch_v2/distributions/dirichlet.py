"""The Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._autograd.function import Function
from .._dispatch.namespace import aten
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Any, grad_output: Any) -> Any:
    """The gradient of a sample's concentration."""
    total = aten.expand(aten.sum(concentration, -1, True), concentration.shape)
    slope = aten._dirichlet_grad(x, concentration, total)
    return slope * (grad_output - aten.sum(x * grad_output, -1, True))


class _Dirichlet(Function):
    """A sample that knows how it changes with the concentration."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        sample = aten._sample_dirichlet(concentration)
        ctx.save_for_backward(sample, concentration)
        return sample

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        sample, concentration = ctx.saved_tensors
        return _Dirichlet_backward(sample, concentration, grad)


class Dirichlet(ExponentialFamily):
    """Points of the simplex."""

    arg_constraints: ClassVar[Any] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    expanded: ClassVar[Any] = {"concentration": 1}

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Any:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (aten.xlogy(self.concentration - 1.0, value).sum(-1) + aten.lgamma(self.concentration.sum(-1))
                - aten.lgamma(self.concentration).sum(-1))

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        below = (self.concentration < 1).all(-1)
        corner = aten.one_hot(mode[below].argmax(-1), above.shape[-1]).to(mode)
        mode[below] = corner
        return mode

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Any:
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (aten.lgamma(self.concentration).sum(-1) - aten.lgamma(total) - (k - total) * aten.digamma(total)
                - ((self.concentration - 1.0) * aten.digamma(self.concentration)).sum(-1))

    @property
    def _natural_params(self) -> Any:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Any) -> Any:
        x = natural_params[0]
        return x.lgamma().sum(-1) - aten.lgamma(x.sum(-1))
