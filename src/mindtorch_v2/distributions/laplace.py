"""The Laplace distribution."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any, ClassVar

from .._dispatch.namespace import aten, public
from .._dtype import finfo
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Two exponential distributions back to back at `loc`."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    expanded: ClassVar[Any] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        both_numbers = isinstance(loc, Number) and isinstance(scale, Number)
        super().__init__(Size() if both_numbers else self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Any:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        drawn = public.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
        drawn.uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * drawn.sign() * aten.log1p(-drawn.abs())

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -aten.log(2 * self.scale) - aten.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * aten.expm1(-away.abs() / self.scale)

    def icdf(self, value: Tensor) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * aten.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + aten.log(2 * self.scale)
