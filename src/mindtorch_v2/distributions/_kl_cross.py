"""Divergences between distributions of different families."""

from __future__ import annotations

import math
from typing import Any

from .._dispatch.namespace import aten
from ._kl_formulas import infinite_like
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

# q is zero somewhere where p is not.
_INFINITE = (
    (Beta, Pareto, "concentration1"), (Exponential, Beta, "rate"),
    (Exponential, Pareto, "rate"), (Exponential, Uniform, "rate"), (Gamma, Beta, "concentration"),
    (Gamma, Pareto, "concentration"), (Gamma, Uniform, "concentration"), (Gumbel, Beta, "loc"),
    (Gumbel, Exponential, "loc"), (Gumbel, Gamma, "loc"), (Gumbel, Pareto, "loc"), (Gumbel, Uniform, "loc"),
    (Laplace, Beta, "loc"), (Laplace, Exponential, "loc"), (Laplace, Gamma, "loc"), (Laplace, Pareto, "loc"),
    (Laplace, Uniform, "loc"), (Normal, Beta, "loc"), (Normal, Exponential, "loc"), (Normal, Gamma, "loc"),
    (Normal, Pareto, "loc"), (Normal, Uniform, "loc"), (Pareto, Beta, "scale"), (Pareto, Uniform, "scale"),
    (Poisson, Bernoulli, "rate"), (Poisson, Binomial, "rate"), (ContinuousBernoulli, Pareto, "probs"),
    *[(one, ContinuousBernoulli, parameter) for one, parameter in (
        (Exponential, "rate"), (Gamma, "concentration"), (Gumbel, "loc"), (Laplace, "loc"), (Normal, "loc"),
        (Pareto, "scale"))],
)


def _register_infinite(type_p: type, type_q: type, parameter: str) -> None:
    register_kl(type_p, type_q)(lambda p, q: infinite_like(getattr(p, parameter)))


for _type_p, _type_q, _parameter in _INFINITE:
    _register_infinite(_type_p, _type_q, _parameter)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Any:
    return -p.entropy() - p.mean * q.logits + q._log_normaliser_of(*q._split())


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Any:
    inside = aten.logical_and(p.high < 1, p.low > 0)
    return aten.where(inside, _beta_continuous_bernoulli(p, q), infinite_like(p.low))


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: ContinuousBernoulli, q: Exponential) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: ContinuousBernoulli, q: Normal) -> Any:
    spread = q.scale.square()
    return -p.entropy() + 0.5 * (2 * math.pi * spread).log() + (p.variance + (p.mean - q.loc).square()) / (2 * spread)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Any:
    outside = aten.logical_or(q.low >= 0, q.high <= 1)
    return aten.where(outside, infinite_like(p.probs), -p.entropy() + (q.high - q.low).log())


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, Exponential)
def _beta_exponential(p: Beta, q: Exponential) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * (p.concentration1 / (p.concentration1 + p.concentration0))


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Any:
    total = p.concentration1 + p.concentration0
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (q.concentration - 1) * (p.concentration1.digamma() - total.digamma())
    return -p.entropy() + t2 - t3 + q.rate * p.concentration1 / total


@register_kl(Beta, Normal)
def _beta_normal(p: Beta, q: Normal) -> Any:
    mean = p.concentration1 / (p.concentration1 + p.concentration0)
    square = q.scale.pow(2)
    t2 = 0.5 * (square * 2 * math.pi).log()
    t3 = (mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)) * 0.5
    return -p.entropy() + t2 + (t3 - mean * q.loc + q.loc.pow(2) * 0.5) / square


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return aten.where((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), math.inf, result)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Any:
    ratio = q.rate / p.rate
    return (-q.concentration * ratio.log() + ratio + q.concentration.lgamma() + q.concentration * euler_constant
            - (1 + euler_constant))


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Any:
    product = p.rate * q.scale
    moved = q.loc / q.scale
    return product.log() - 1 + moved.exp() * product / (product + 1) - moved + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Exponential, q: Normal) -> Any:
    square, rate = q.scale.pow(2), p.rate.pow(2)
    return (0.5 * (rate * square * 2 * math.pi).log() - 1
            + (rate.reciprocal() - q.loc / p.rate + q.loc.pow(2) / 2) / square)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Any:
    product = p.rate * q.scale
    moved = q.loc / q.scale
    t1 = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    t2 = product.log() + p.concentration / product
    return t1 + t2 + moved.exp() * (1 + product.reciprocal()).pow(-p.concentration) - moved


@register_kl(Gamma, Normal)
def _gamma_normal(p: Gamma, q: Normal) -> Any:
    square, rate = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * (rate * square * 2 * math.pi).log() - p.concentration - p.concentration.lgamma()
    t2 = 0.5 * (p.concentration.pow(2) + p.concentration) / rate
    t3 = q.loc * p.concentration / p.rate
    return t1 + (p.concentration - 1) * p.concentration.digamma() + (t2 - t3 + 0.5 * q.loc.pow(2)) / square


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Gumbel, q: Normal) -> Any:
    ratio = p.scale / q.scale
    t2 = (math.pi * ratio).pow(2) / 12
    t3 = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + t2 + t3 - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Any:
    square = q.scale.pow(2)
    ratio = p.scale.pow(2) / square
    return -0.5 * (2 * ratio / math.pi).log() + ratio + 0.5 * (p.loc - q.loc).pow(2) / square - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Any:
    mean, ratio = p.loc / q.scale, (p.scale / q.scale).pow(2)
    moved = q.loc / q.scale
    return -ratio.log() * 0.5 + mean - moved + aten.exp(-mean + 0.5 * ratio + moved) - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Any:
    away = p.loc - q.loc
    ratio = p.scale / q.scale
    scaled = away / p.scale
    t2 = math.sqrt(2 / math.pi) * p.scale * aten.exp(-0.5 * scaled.pow(2))
    t3 = away * aten.erf(math.sqrt(0.5) * scaled)
    return -ratio.log() + (t2 + t3) / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Any:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return aten.where(p.alpha <= 1, math.inf, result)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Any:
    common = p.scale.log() + p.alpha.reciprocal()
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    result = (p.alpha.log() - common + t2 + (1 - q.concentration) * common
              + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1)
    return aten.where(p.alpha <= 1, math.inf, result)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Any:
    square = 2 * q.scale.pow(2)
    common = p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    t3 = p.alpha * common.pow(2) / (p.alpha - 2)
    result = t1 - p.alpha.reciprocal() + (t3 + (p.alpha * common - q.loc).pow(2)) / square - 1
    return aten.where(p.alpha <= 2, math.inf, result)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Any:
    width = p.high - p.low
    t2 = (q.concentration1 - 1) * (aten.xlogy(p.high, p.high) - aten.xlogy(p.low, p.low) - width) / width
    far, near = 1 - p.high, 1 - p.low
    t3 = (q.concentration0 - 1) * (aten.xlogy(far, far) - aten.xlogy(near, near) + width) / width
    normaliser = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result = t3 + normaliser - width.log() - t2
    return aten.where((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), math.inf, result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Any:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return aten.where(p.low < q.support.lower_bound, math.inf, result)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Any:
    width = p.high - p.low
    t1 = width.log()
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (1 - q.concentration) * (aten.xlogy(p.high, p.high) - aten.xlogy(p.low, p.low) - width) / width
    result = -t1 + t2 + t3 + q.rate * (p.high + p.low) / 2
    return aten.where(p.low < q.support.lower_bound, math.inf, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Any:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return common.log() + 0.5 * (high + low) - common * (aten.exp(-high) - aten.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Any:
    width = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / width).log()
    return t1 + (width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)) * 0.5 / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Any:
    width = p.high - p.low
    t1 = (q.alpha * q.scale.pow(q.alpha) * width).log()
    t2 = (aten.xlogy(p.high, p.high) - aten.xlogy(p.low, p.low) - width) / width
    result = t2 * (q.alpha + 1) - t1
    return aten.where(p.low < q.support.lower_bound, math.inf, result)
