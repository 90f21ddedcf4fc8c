"""Samples of gamma, Dirichlet and Poisson distributions, from uniform and normal numbers.

They are drawn by rejection: what was not accepted is drawn again, until nothing is left. Asking whether something is
left waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.namespace import aten
from ..._dtype import bool_, float32, float64
from ..._tensor import Tensor
from . import formula

SMALL_RATE = 10.0


def _uniform(like: Tensor, generator: Any) -> Tensor:
    """Numbers above 0 and up to 1."""
    return 1 - aten.empty_like(like).uniform_(0.0, 1.0, generator=generator)


def _accepted(like: Tensor, propose: Callable[[], tuple[Tensor, Tensor]]) -> Tensor:
    """Proposals, each drawn until it is accepted."""
    made, open_ = aten.zeros_like(like), aten.ones_like(like, dtype=bool_)
    while open_.any().item():
        proposal, good = propose()
        taken = aten.logical_and(open_, good)
        made = aten.where(taken, proposal, made)
        open_ = aten.logical_and(open_, aten.logical_not(good))
    return made


def _wide(self: Tensor) -> Tensor:
    if not self.is_floating_point():
        raise ValueError("rates that are not floating numbers")  # the CPU's kernel explains it
    return self if self.dtype is float64 else self.to(float32)


@formula("_standard_gamma")
def standard_gamma(self: Tensor, generator: Any) -> Tensor:
    """Gamma numbers of rate 1: a cube of a normal number, accepted by comparing densities (Marsaglia and Tsang)."""
    alpha = _wide(self)
    # Below 1, one is drawn for a shape that is larger by 1, and scaled by a power of a uniform number.
    low = alpha < 1
    d = aten.where(low, alpha + 1, alpha) - 1 / 3
    c = (9 * d).rsqrt()

    def propose() -> tuple[Tensor, Tensor]:
        x = aten.empty_like(d).normal_(0.0, 1.0, generator=generator)
        v = (1 + c * x) ** 3
        safe = aten.where(v > 0, v, 1.0)
        below = _uniform(d, generator).log() < 0.5 * x * x + d - d * v + d * safe.log()
        good = aten.logical_or(aten.logical_and(v > 0, below), aten.isnan(alpha))
        return aten.where(aten.isnan(alpha), alpha, d * v), good

    made = _accepted(d, propose)
    made = aten.where(low, made * _uniform(d, generator) ** (1 / alpha), made).to(self.dtype)
    # Zero is no gamma number: what is too small becomes the smallest number with full precision.
    return made.clamp(min=float(np.finfo(np.float64 if self.dtype is float64 else np.float32).tiny))


@formula("_sample_dirichlet")
def sample_dirichlet(self: Tensor, generator: Any) -> Tensor:
    """Shares of gamma numbers."""
    drawn = standard_gamma(_wide(self), generator)
    return (drawn / drawn.sum([-1], True)).to(self.dtype)


@formula("poisson")
def poisson(self: Tensor, generator: Any) -> Tensor:
    """Counts by their rates: small ones by adding probabilities up, large ones by rejection (Hörmann's PTRS)."""
    rate = _wide(self)
    if self.numel() and (rate < 0).any().item():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    small = rate < SMALL_RATE
    few = _few(aten.where(small, rate, 0.0), generator)
    return aten.where(small, few, _many(aten.where(small, SMALL_RATE, rate), generator)).to(self.dtype)


def _few(rate: Tensor, generator: Any) -> Tensor:
    drawn, chance = _uniform(rate, generator), (-rate).exp()
    passed, count, number = chance, aten.zeros_like(rate), 0
    while number < 64:  # beyond that, a rate below 10 has no probability that float32 can add
        more = drawn > passed
        if not more.any().item():
            break
        number += 1
        count = count + more.to(rate.dtype)
        chance = chance * rate / number
        passed = passed + chance
    return count


def _many(rate: Tensor, generator: Any) -> Tensor:
    b = 0.931 + 2.53 * rate.sqrt()
    a = -0.059 + 0.02483 * b
    quick, scale, log_rate = 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4), rate.log()

    def propose() -> tuple[Tensor, Tensor]:
        u, v = _uniform(rate, generator) - 0.5, _uniform(rate, generator)
        edge = 0.5 - u.abs()
        count = ((2 * a / edge + b) * u + rate + 0.43).floor()
        inside = aten.logical_and(edge >= 0.07, v <= quick)
        outside = aten.logical_or(count < 0, aten.logical_and(edge < 0.013, v > edge))
        density = count * log_rate - rate - (count.clamp(min=0) + 1).lgamma()
        below = (v * scale / (a / (edge * edge) + b)).log() <= density
        return count, aten.logical_or(inside, aten.logical_and(aten.logical_not(outside), below))

    return _accepted(rate, propose)
