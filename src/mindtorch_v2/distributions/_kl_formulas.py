"""Divergences between distributions of one family."""

from __future__ import annotations

import math
from typing import Any

from .._autograd.api import grad
from .._dispatch.namespace import aten
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, half_log_determinant, solve_lower
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import euler_constant, sum_rightmost
from .wishart import Wishart, multivariate_digamma


def infinite_like(tensor: Any) -> Any:
    """Infinity everywhere."""
    return aten.full_like(tensor, math.inf)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Any:
    t1 = p.probs * (aten.softplus(-q.logits) - aten.softplus(-p.logits))
    t1[q.probs == 0] = math.inf
    t1[p.probs == 0] = 0
    t2 = (1 - p.probs) * (aten.softplus(q.logits) - aten.softplus(p.logits))
    t2[q.probs == 1] = math.inf
    t2[p.probs == 1] = 0
    return t1 + t2


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Any:
    sum_p = p.concentration1 + p.concentration0
    sum_q = q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * aten.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * aten.digamma(p.concentration0)
    return t1 - t2 + t3 + t4 + (sum_q - sum_p) * aten.digamma(sum_p)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return aten.where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Any:
    t = p.probs * (p.logits - q.logits)
    t[(q.probs == 0).expand_as(t)] = math.inf
    t[(p.probs == 0).expand_as(t)] = 0
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Any:
    return (((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log())


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Any:
    sum_p, sum_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t1 = sum_p.lgamma() - sum_q.lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    t3 = p.concentration - q.concentration
    t4 = p.concentration.digamma() - sum_p.digamma().unsqueeze(-1)
    return t1 - t2 + (t3 * t4).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Any:
    """The divergence of Bregman of the log-normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed "
                                  "using Bregman divergences")
    mine = [parameter.detach().requires_grad_() for parameter in p._natural_params]
    normaliser = p._log_normalizer(*mine)
    slopes = grad(normaliser.sum(), mine, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normaliser
    for a, b, slope in zip(mine, q._natural_params, slopes, strict=True):
        result = result - sum_rightmost((b - a) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Any:
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = aten.lgamma(q.concentration) - aten.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * aten.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Any:
    return -p.entropy() - aten.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Any:
    ratio = p.scale / q.scale
    moved = q.loc / q.scale
    away = p.loc / q.scale
    t3 = aten.exp(moved - away + (ratio + 1).lgamma())
    return -ratio.log() - moved + away + ratio * euler_constant + t3 - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Any:
    ratio = p.scale / q.scale
    away = (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * aten.exp(-away / p.scale) - 1


class _Gauss:
    """What divergences of normal vectors are made of, for either way to give a covariance."""

    def __init__(self, of: MultivariateNormal | LowRankMultivariateNormal) -> None:
        self.loc = of.loc
        if isinstance(of, MultivariateNormal):
            self.half_log_determinant = half_log_determinant(of._unbroadcasted_scale_tril)
            self.root = of._unbroadcasted_scale_tril  # times its transpose, this is the covariance
        else:
            self.half_log_determinant = 0.5 * of._log_determinant()
            self.root = aten.cat([of.cov_factor, aten.diag_embed(of.cov_diag.sqrt())], -1)
        self._of = of

    def squares(self, columns: Any) -> Any:
        """Squared lengths of all columns together, measured by the inverse of the covariance."""
        of = self._of
        if isinstance(of, MultivariateNormal):
            return solve_lower(of._unbroadcasted_scale_tril, columns).pow(2).sum((-2, -1))
        inside = solve_lower(of._capacitance_tril, aten.matmul(of._factor.mT / of._diagonal.unsqueeze(-2), columns))
        return (columns.pow(2) / of._diagonal.unsqueeze(-1)).sum((-2, -1)) - inside.pow(2).sum((-2, -1))


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        low_rank = "Low Rank " if isinstance(p, LowRankMultivariateNormal) or isinstance(
            q, LowRankMultivariateNormal) else ""
        raise ValueError(f"KL-divergence between two {low_rank}Multivariate Normals with different event shapes cannot "
                         "be computed")
    left, right = _Gauss(p), _Gauss(q)
    logs = right.half_log_determinant - left.half_log_determinant
    distance = right.squares((q.loc - p.loc).unsqueeze(-1))
    return logs + 0.5 * (right.squares(left.root) + distance - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p: Wishart, q: Wishart) -> Any:
    size = p.event_shape[-1]
    logs = half_log_determinant(q._factor) - half_log_determinant(p._factor)
    trace = solve_lower(q._factor, p._factor).pow(2).sum((-2, -1))
    return (q.df * logs + 0.5 * p.df * (trace - size) + aten.mvlgamma(q.df / 2, size) - aten.mvlgamma(p.df / 2, size)
            + 0.5 * (p.df - q.df) * multivariate_digamma(p.df / 2, size))


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    away = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + away - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Any:
    scales = p.scale / q.scale
    powers = q.alpha / p.alpha
    result = q.alpha * scales.log() - powers.log() + powers - 1
    return aten.where(p.support.lower_bound < q.support.lower_bound, math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return aten.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
