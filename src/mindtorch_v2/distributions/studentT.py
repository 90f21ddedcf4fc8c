"""Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Number
from typing import Any, ClassVar

from .._dispatch.namespace import aten
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Normal numbers divided by the root of an independent chi-squared mean, moved and scaled."""

    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive, "loc": constraints.real, "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    expanded: ClassVar[Any] = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(Size() if isinstance(df, Number) else self.df.size(), validate_args=validate_args)

    def _expand_more(self, new: Any, batch_shape: Size) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> Any:
        return aten.where(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return aten.where(self.df > 2, finite, aten.where(self.df > 1, math.inf, aten.full_like(self.df, math.nan)))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Any:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, self.df.dtype, self.df.device)
        squares = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * aten.rsqrt(squares / self.df))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normaliser = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + aten.lgamma(0.5 * self.df)
                      - aten.lgamma(0.5 * (self.df + 1.0)))
        return -0.5 * (self.df + 1.0) * aten.log1p(y**2.0 / self.df) - normaliser

    def entropy(self) -> Any:
        log_beta = aten.lgamma(0.5 * self.df) + math.lgamma(0.5) - aten.lgamma(0.5 * (self.df + 1))
        return (self.scale.log() + 0.5 * (self.df + 1) * (aten.digamma(0.5 * (self.df + 1))
                                                          - aten.digamma(0.5 * self.df))
                + 0.5 * self.df.log() + log_beta)
