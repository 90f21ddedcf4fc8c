"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from .._autograd.grad_mode import no_grad
from .._dispatch.namespace import aten, public
from .._dtype import bool_, float64
from .._shape import Size
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _log_bessel(order: int, x: Tensor) -> Any:
    """The logarithm of the modified Bessel function of the first kind."""
    scaled = aten.special_i0e(x) if order == 0 else aten.special_i1e(x)
    return aten.log(scaled) + x


class VonMises(Distribution):
    """Angles around `loc`: the normal distribution on a circle. Mean and variance are the circular ones."""

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    expanded: ClassVar[Any] = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """One less the mean length of the sum of two directions."""
        return 1 - aten.exp(_log_bessel(1, self.concentration) - _log_bessel(0, self.concentration))

    def log_prob(self, value: Tensor) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return (self.concentration * aten.cos(value - self.loc) - math.log(2 * math.pi)
                - _log_bessel(0, self.concentration))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Any:
        """Best and Fisher's method: angles of a wrapped Cauchy distribution, some of them rejected."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            kappa = self.concentration.to(float64)
            root = 1 + aten.sqrt(1 + 4 * kappa**2)
            rho = (root - aten.sqrt(2 * root)) / (2 * kappa)
            # For a small concentration the formula cancels; its series does not.
            r = aten.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
            angles = aten.zeros(shape, dtype=float64, device=kappa.device)
            done = aten.zeros(shape, dtype=bool_, device=kappa.device)
            while not done.all():
                turn, level, side = aten.unbind(public.rand((3, *shape), dtype=float64, device=kappa.device))
                z = aten.cos(math.pi * turn)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - level) > 0) | ((aten.log(c / level) + 1 - c) >= 0)
                angles = aten.where(accept, aten.sign(side - 0.5) * aten.acos(f), angles)
                done = done | accept
            wrapped = (angles + math.pi + self.loc.to(float64)) % (2 * math.pi) - math.pi
            return wrapped.to(self.loc.dtype)
