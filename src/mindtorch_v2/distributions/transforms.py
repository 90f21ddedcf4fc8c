"""Transforms of random variables."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from .._dispatch.namespace import aten
from .._dtype import finfo
from .._shape import Size, broadcast_shapes
from .._tensor import Tensor
from . import constraints
from ._transform import ComposeTransform, IndependentTransform, Transform, _InverseTransform  # noqa: F401 (theirs too)
from ._transform_vectors import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)
from .utils import broadcast_all

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]

for _transform in (CatTransform, ComposeTransform, CorrCholeskyTransform, IndependentTransform, LowerCholeskyTransform,
                   PositiveDefiniteTransform, ReshapeTransform, SoftmaxTransform, StackTransform,
                   StickBreakingTransform, Transform):
    _transform.__module__ = __name__  # as files name them

identity_transform = ComposeTransform([])


class ExpTransform(Transform):
    """y = exp(x)."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpTransform)

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        return x.exp()

    def _inverse(self, y: Tensor) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, of positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self) -> Any:
        """The exponent's sign."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(aten.eq(self.exponent, other.exponent).all())

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return Size(broadcast_shapes(tuple(shape), tuple(self.exponent.shape)))

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


def _clipped_sigmoid(x: Tensor) -> Any:
    info = finfo(x.dtype)
    return aten.clamp(aten.sigmoid(x), min=info.tiny, max=1.0 - info.eps)


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SigmoidTransform)

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Any:
        info = finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return -aten.softplus(-x) - aten.softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftplusTransform)

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        return aten.softplus(x)

    def _inverse(self, y: Tensor) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return -aten.softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TanhTransform)

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Any:
        return aten.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        # log(1 - tanh(x)^2), without the cancellation.
        return 2.0 * (math.log(2.0) - x - aten.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|; its inverse picks the positive number."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = None

    def _call(self, x: Tensor) -> Any:
        return x.abs()

    def _inverse(self, y: Tensor) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    def _space(self) -> Any:
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """All numbers."""
        return self._space()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """All numbers."""
        return self._space()

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(a == b if isinstance(a, Number) and isinstance(b, Number) else bool((a == b).all())
                   for a, b in pairs)

    __hash__ = None

    @property
    def sign(self) -> Any:
        """The scale's sign."""
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)  # type: ignore[operator]
        return self.scale.sign()

    def _call(self, x: Tensor) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        if isinstance(self.scale, Number):
            result = aten.full_like(x, math.log(abs(self.scale)))  # type: ignore[arg-type]
        else:
            result = aten.log(aten.abs(self.scale))
        shape = x.shape
        if self.event_dim:
            result = result.reshape((*result.shape[:result.dim() - self.event_dim], -1)).sum(-1)
            shape = shape[:-self.event_dim]
        return result.expand(shape)

    def _shape(self, shape: Any) -> Any:
        return Size(broadcast_shapes(tuple(shape), tuple(getattr(self.loc, "shape", ())),
                                     tuple(getattr(self.scale, "shape", ()))))

    def forward_shape(self, shape: Any) -> Any:
        return self._shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._shape(shape)


class CumulativeDistributionTransform(Transform):
    """y = the distribution function at x."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The distribution's support."""
        return self.distribution.support

    def _call(self, x: Tensor) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Any:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
