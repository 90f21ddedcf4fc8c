"""`torch.distributions` beside PyTorch's: draws from the same seed, densities, moments, gradients, errors."""

from __future__ import annotations

import importlib
import math
import warnings

import numpy as np
import pytest
from harness import assert_same, check_error, data, is_tensor, make, to_numpy, values

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

positive = data(3, low=0.2, high=3.0)
positive2 = data(3, low=0.3, high=2.0, seed=5)
anything = data(3)
probs = data(2, 4, low=0.1, high=0.9)
half = values([0.2, 0.5, 0.9])
spd = values([[2.0, 0.5], [0.5, 1.0]])
factor = values([[[1.0, 0.0], [0.5, 2.0]], [[0.7, 0.0], [-0.5, 1.0]], [[2.0, 0.0], [0.1, 0.3]]])

# Name -> (contents of the parameters, the distribution made of them).
FAMILIES = {
    "normal": ((anything, positive), lambda D, loc, scale: D.Normal(loc, scale)),
    "normal, numbers": ((), lambda D: D.Normal(0.5, 2.0)),
    "bernoulli": ((half,), lambda D, p: D.Bernoulli(p)),
    "bernoulli, logits": ((anything,), lambda D, z: D.Bernoulli(logits=z)),
    "categorical": ((probs,), lambda D, p: D.Categorical(p)),
    "categorical, logits": ((data(3, 4),), lambda D, z: D.Categorical(logits=z)),
    "uniform": ((anything,), lambda D, low: D.Uniform(low, low.detach() + 2)),
    "exponential": ((positive,), lambda D, r: D.Exponential(r)),
    "beta": ((positive, positive2), lambda D, a, b: D.Beta(a, b)),
    "beta, numbers": ((), lambda D: D.Beta(2.0, 3.0)),
    "gamma": ((positive, positive2), lambda D, a, b: D.Gamma(a, b)),
    "dirichlet": ((data(2, 3, low=0.3, high=4.0),), lambda D, a: D.Dirichlet(a)),
    "laplace": ((anything, positive), lambda D, loc, scale: D.Laplace(loc, scale)),
    "lognormal": ((anything, positive2), lambda D, loc, scale: D.LogNormal(loc, scale)),
    "gumbel": ((anything, positive), lambda D, loc, scale: D.Gumbel(loc, scale)),
    "gumbel, numbers": ((), lambda D: D.Gumbel(0.0, 1.0)),
    "cauchy": ((anything, positive), lambda D, loc, scale: D.Cauchy(loc, scale)),
    "halfnormal": ((positive,), lambda D, s: D.HalfNormal(s)),
    "halfcauchy": ((positive,), lambda D, s: D.HalfCauchy(s)),
    "poisson": ((values([0.5, 3.0, 15.0]),), lambda D, r: D.Poisson(r)),
    "geometric": ((half,), lambda D, p: D.Geometric(p)),
    "geometric, logits": ((anything,), lambda D, z: D.Geometric(logits=z)),
    "binomial": ((half,), lambda D, p: D.Binomial(6, p)),
    "binomial, logits": ((anything,), lambda D, z: D.Binomial(6, logits=z)),
    "negative binomial": ((half,), lambda D, p: D.NegativeBinomial(4.0, p)),
    "multinomial": ((probs,), lambda D, p: D.Multinomial(5, p)),
    "one hot": ((probs,), lambda D, p: D.OneHotCategorical(p)),
    "one hot, straight": ((data(3, 4),), lambda D, z: D.OneHotCategoricalStraightThrough(logits=z)),
    "student": ((values([1.5, 2.5, 5.0]), anything, positive), lambda D, df, loc, s: D.StudentT(df, loc, s)),
    "chi2": ((positive,), lambda D, df: D.Chi2(df)),
    "fisher": ((positive, positive2), lambda D, a, b: D.FisherSnedecor(a * 4, b * 4)),
    "mvn": ((data(3, 2), spd), lambda D, loc, c: D.MultivariateNormal(loc, c)),
    "mvn, tril": ((data(2), factor), lambda D, loc, f: D.MultivariateNormal(loc, scale_tril=f)),
    "mvn, precision": ((data(2), spd), lambda D, loc, f: D.MultivariateNormal(loc, precision_matrix=f)),
    "independent": ((data(2, 3), data(2, 3, low=0.2)),
                    lambda D, loc, s: D.Independent(D.Normal(loc, s.abs() + 0.1), 1)),
    "mixture": ((data(4), data(3, 4)), lambda D, w, loc: D.MixtureSameFamily(
        D.Categorical(logits=w.expand(3, 4)), D.Normal(loc, 1.5))),
    "mixture, vectors": ((data(4), data(4, 2)), lambda D, w, loc: D.MixtureSameFamily(
        D.Categorical(logits=w), D.Independent(D.Normal(loc, 1.5), 1))),
    "transformed": ((anything, positive), lambda D, loc, s: D.TransformedDistribution(
        D.Normal(loc, s), [D.TanhTransform(), D.AffineTransform(1.0, -2.0)])),
    "transformed, softplus": ((anything,), lambda D, loc: D.TransformedDistribution(
        D.Laplace(loc, 1.0), D.SoftplusTransform())),
    "logistic": ((anything,), lambda D, loc: D.TransformedDistribution(
        D.Uniform(loc.detach() * 0, 1.0), [D.SigmoidTransform().inv, D.AffineTransform(loc, 2.0)])),
    "logistic normal": ((data(2, 3), data(2, 3, low=0.3, high=1.0)), lambda D, loc, s: D.LogisticNormal(loc, s)),
    "weibull": ((positive, positive2), lambda D, a, b: D.Weibull(a, b)),
    "pareto": ((positive, values([0.5, 1.5, 4.0])), lambda D, a, b: D.Pareto(a, b)),
    "kumaraswamy": ((positive, positive2), lambda D, a, b: D.Kumaraswamy(a, b)),
    "inverse gamma": ((values([0.5, 1.5, 4.0]), positive2), lambda D, a, b: D.InverseGamma(a, b)),
    "continuous bernoulli": ((values([0.1, 0.5, 0.9]),), lambda D, p: D.ContinuousBernoulli(p)),
    "continuous bernoulli, logits": ((anything,), lambda D, z: D.ContinuousBernoulli(logits=z)),
    "generalized pareto": ((anything, positive, values([-0.4, 0.0, 0.3])),
                           lambda D, loc, s, k: D.GeneralizedPareto(loc, s, k)),
    "lkj": ((values([0.5, 1.5]),), lambda D, k: D.LKJCholesky(4, k)),
    "von mises": ((anything, positive), lambda D, loc, k: D.VonMises(loc, k)),
    "low rank": ((data(2), data(3, 2, 1), values([0.5, 2.0])),
                 lambda D, loc, f, d: D.LowRankMultivariateNormal(loc, f, d)),
    "relaxed bernoulli": ((half,), lambda D, p: D.RelaxedBernoulli(p.detach()[0] + 0.4, p)),
    "relaxed one hot": ((data(3, 4),), lambda D, z: D.RelaxedOneHotCategorical(
        z.detach()[0, 0] * 0 + 0.7, logits=z)),
}


def both(name, dtype=None):
    contents, build = FAMILIES[name]
    made = []
    for module in (ours, torch):
        given = [make(module, (c[0], dtype or c[1]), True) for c in contents]
        made.append((module, given, build(module.distributions, *given)))
    return made


def attempt(function):
    """A result, or the exception's type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()
    except (NotImplementedError, ValueError, RuntimeError, AttributeError) as error:
        return type(error).__name__


def compare(got, want, label, tolerance=2e-4):
    if is_tensor(want):
        if want.dtype.is_floating_point:
            want = want.detach()
            got = got.detach()
        assert_same(got, want, label, tolerance)
    else:
        assert str(got) == str(want), label


@pytest.mark.parametrize("name", FAMILIES)
def test_description(name):
    (_, _, got), (_, _, want) = both(name)
    for label in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support", "arg_constraints"):
        assert str(getattr(got, label)) == str(getattr(want, label)), label
    assert repr(got) == repr(want)
    assert repr(got.support) == repr(want.support)
    assert got.support.event_dim == want.support.event_dim
    assert got.support.is_discrete == want.support.is_discrete
    bigger = (2, *got.batch_shape)
    assert repr(got.expand(bigger)) == repr(want.expand(bigger))
    assert tuple(got.expand(bigger).sample((4,)).shape) == tuple(want.expand(bigger).sample((4,)).shape)


@pytest.mark.parametrize("name", FAMILIES)
def test_moments(name):
    (_, _, got), (_, _, want) = both(name)
    for label in ("mean", "mode", "variance", "stddev"):
        compare(attempt(lambda label=label: getattr(got, label)),
                attempt(lambda label=label: getattr(want, label)), label)
    for label in ("entropy", "perplexity", "enumerate_support"):
        compare(attempt(lambda label=label: getattr(got, label)()),
                attempt(lambda label=label: getattr(want, label)()), label)
    bigger = (2, *got.batch_shape)
    if name == "multinomial":
        return  # PyTorch's expanded multinomial lost its binomial
    compare(attempt(got.expand(bigger).entropy), attempt(want.expand(bigger).entropy), "expanded entropy")


@pytest.mark.parametrize("name", FAMILIES)
def test_sample(name):
    (_, _, got), (_, _, want) = both(name)
    for shape in ((), (5,), (2, 3)):
        ours.manual_seed(7)
        torch.manual_seed(7)
        compare(got.sample(shape), want.sample(shape), f"sample {shape}", 1e-4)
    assert ours.rand(1).item() == torch.rand(1).item(), "the streams stand at the same place"


@pytest.mark.parametrize("name", FAMILIES)
def test_rsample_and_its_gradient(name):
    (_, leaves, got), (_, their_leaves, want) = both(name, "float64")
    if not want.has_rsample:
        assert attempt(got.rsample) == attempt(want.rsample)
        return
    ours.manual_seed(3)
    torch.manual_seed(3)
    mine, theirs = got.rsample((6,)), want.rsample((6,))
    compare(mine, theirs, "rsample", 1e-6)
    assert mine.requires_grad == theirs.requires_grad
    if not theirs.requires_grad:
        return
    mine.sin().sum().backward()
    theirs.sin().sum().backward()
    for leaf, their_leaf in zip(leaves, their_leaves, strict=True):
        if their_leaf.grad is not None:
            # PyTorch approximates the derivatives of gamma and beta numbers to three digits.
            compare(leaf.grad, their_leaf.grad, "gradient", 5e-3)


@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "generalized pareto"])
def test_log_prob_and_its_gradient(name):
    (_, leaves, got), (_, their_leaves, want) = both(name, "float64")
    torch.manual_seed(11)
    drawn = want.sample((4,))
    point = ours.tensor(drawn.numpy())
    mine, theirs = got.log_prob(point), want.log_prob(drawn)
    compare(mine, theirs, "log_prob", 1e-6)
    if theirs.requires_grad:
        mine.sum().backward()
        theirs.sum().backward()
        for leaf, their_leaf in zip(leaves, their_leaves, strict=True):
            if their_leaf.grad is not None:
                compare(leaf.grad, their_leaf.grad, "gradient", 1e-5)


@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "generalized pareto"])
def test_distribution_functions(name):
    (_, _, got), (_, _, want) = both(name, "float64")
    torch.manual_seed(2)
    drawn = want.sample()
    compare(attempt(lambda: got.cdf(ours.tensor(drawn.numpy()))), attempt(lambda: want.cdf(drawn)), "cdf", 1e-6)
    level = np.broadcast_to(np.array([0.1, 0.4, 0.8]) if 3 in want.batch_shape else 0.3, tuple(want.batch_shape))
    compare(attempt(lambda: got.icdf(ours.tensor(level.copy()))),
            attempt(lambda: want.icdf(torch.tensor(level.copy()))), "icdf", 1e-6)


def test_generalized_pareto():
    """In float32 only: PyTorch's compares its concentration with a float32 zero."""
    made = []
    for module, leaves, d in both("generalized pareto"):
        x = module.tensor([[0.1, 0.5, 1.0]]) * d.scale.detach() + d.loc.detach()
        found = [d.log_prob(x), d.cdf(x), d.log_cdf(x), d.log_survival_function(x),
                 d.icdf(module.tensor([0.1, 0.5, 0.9]))]
        sum((f.sum() for f in found), module.zeros(())).backward()
        made.append([*found, *(leaf.grad for leaf in leaves)])
    for got, want in zip(*made, strict=True):
        compare(got, want, "generalized pareto", 1e-4)


PAIRS = [
    ("normal", "normal"), ("bernoulli", "bernoulli"), ("beta", "beta"), ("binomial", "binomial"),
    ("categorical", "categorical"), ("cauchy", "cauchy"), ("dirichlet", "dirichlet"), ("exponential", "exponential"),
    ("gamma", "gamma"), ("geometric", "geometric"), ("gumbel", "gumbel"), ("halfnormal", "halfnormal"),
    ("laplace", "laplace"), ("lognormal", "lognormal"), ("mvn", "mvn, tril"), ("one hot", "one hot"),
    ("pareto", "pareto"), ("poisson", "poisson"), ("uniform", "uniform"), ("independent", "independent"),
    ("chi2", "gamma"), ("normal", "gamma"), ("student", "normal"), ("normal", "laplace"), ("laplace", "normal"),
    ("normal", "gumbel"), ("gumbel", "normal"), ("exponential", "gamma"), ("exponential", "gumbel"),
    ("exponential", "normal"), ("gamma", "exponential"), ("gamma", "gumbel"), ("gamma", "normal"),
    ("beta", "exponential"), ("beta", "gamma"), ("beta", "normal"), ("beta", "uniform"), ("bernoulli", "poisson"),
    ("pareto", "exponential"), ("pareto", "gamma"), ("pareto", "normal"), ("uniform", "beta"),
    ("uniform", "exponential"), ("uniform", "gamma"), ("uniform", "gumbel"), ("uniform", "normal"),
    ("uniform", "pareto"), ("poisson", "binomial"), ("transformed", "transformed"), ("normal", "cauchy"),
    ("normal", "bernoulli"), ("low rank", "low rank"), ("low rank", "mvn"), ("mvn", "low rank"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_kl(first, second):
    (_, leaves, p), (_, their_leaves, their_p) = both(first, "float64")
    contents, build = FAMILIES[second]
    moved = [(c[0] * 1.1 if "mvn" not in second else c[0], "float64") for c in contents]
    q = build(ours.distributions, *[make(ours, c, True) for c in moved])
    their_q = build(torch.distributions, *[make(torch, c, True) for c in moved])
    mine = attempt(lambda: ours.distributions.kl_divergence(p, q))
    theirs = attempt(lambda: torch.distributions.kl_divergence(their_p, their_q))
    compare(mine, theirs, "divergence", 1e-7)
    if is_tensor(theirs) and theirs.requires_grad and bool(torch.isfinite(theirs).all()):
        mine.sum().backward()
        theirs.sum().backward()
        for leaf, their_leaf in zip(leaves, their_leaves, strict=True):
            if their_leaf.grad is not None:
                compare(leaf.grad, their_leaf.grad, "gradient", 1e-6)


def test_uniform_kl_inside():
    def run(module):
        u = module.distributions.Uniform(module.tensor([0.2, 0.3]), module.tensor([0.7, 0.9]))
        others = [module.distributions.Beta(2.0, 3.0), module.distributions.Exponential(2.0),
                  module.distributions.Gamma(2.0, 1.0), module.distributions.Pareto(0.1, 2.0),
                  module.distributions.Uniform(0.0, 1.0)]
        return [module.distributions.kl_divergence(u, q) for q in others]

    for got, want in zip(run(ours), run(torch), strict=True):
        assert_same(got, want, "kl")


def test_register_kl():
    D = ours.distributions

    class Mine(D.Normal):
        pass

    assert float(D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0))) == 0.0
    D.register_kl(Mine, D.Normal)(lambda p, q: "found")
    assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)) == "found"
    with pytest.raises(TypeError, match="Distribution subclass"):
        D.register_kl("Normal", D.Normal)


TRANSFORMS = {
    "exp": (data(3, 4), lambda D, m: D.ExpTransform()),
    "sigmoid": (data(3, 4), lambda D, m: D.SigmoidTransform()),
    "tanh": (data(3, 4), lambda D, m: D.TanhTransform()),
    "softplus": (data(3, 4), lambda D, m: D.SoftplusTransform()),
    "power": (data(3, 4, low=0.1), lambda D, m: D.PowerTransform(m.tensor(1.7))),
    "affine": (data(3, 4), lambda D, m: D.AffineTransform(m.tensor([1.0, 2.0, 3.0, 4.0]), -2.0)),
    "affine, event": (data(3, 4), lambda D, m: D.AffineTransform(0.5, m.tensor([1.0, -2.0, 3.0, 4.0]), event_dim=1)),
    "compose": (data(3, 4), lambda D, m: D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.SigmoidTransform()])),
    "compose, mixed": (data(3, 4), lambda D, m: D.ComposeTransform([D.ExpTransform(), D.ExpTransform().inv,
                                                                   D.StickBreakingTransform()])),
    "inverse": (data(3, 4, low=0.1, high=0.9), lambda D, m: D.SigmoidTransform().inv),
    "independent": (data(3, 4), lambda D, m: D.IndependentTransform(D.ExpTransform(), 1)),
    "stick": (data(3, 4), lambda D, m: D.StickBreakingTransform()),
    "softmax": (data(3, 4), lambda D, m: D.SoftmaxTransform()),
    "abs": (data(3, 4), lambda D, m: D.AbsTransform()),
    "reshape": (data(3, 4), lambda D, m: D.ReshapeTransform((4,), (2, 2))),
    "cholesky": (data(2, 3, 3), lambda D, m: D.LowerCholeskyTransform()),
    "definite": (data(2, 3, 3), lambda D, m: D.PositiveDefiniteTransform()),
    "correlation": (data(2, 6), lambda D, m: D.CorrCholeskyTransform()),
    "cat": (data(3, 4, low=0.2), lambda D, m: D.CatTransform([D.ExpTransform(), D.TanhTransform()], 1, [1, 3])),
    "stack": (data(3, 2), lambda D, m: D.StackTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], 1)),
    "cumulative": (data(3, 4), lambda D, m: D.CumulativeDistributionTransform(D.Normal(0.0, 1.0))),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    content, build = TRANSFORMS[name]
    found = []
    for module in (ours, torch):
        t = build(module.distributions, module)
        x = make(module, content, True)
        y = t(x)
        result = {"y": y, "back": t.inv(y), "repr": repr(t), "repr inv": repr(t.inv), "bijective": t.bijective,
                  "shape": attempt(lambda t=t, x=x: tuple(t.forward_shape(tuple(x.shape)))),
                  "back shape": attempt(lambda t=t, y=y: tuple(t.inverse_shape(tuple(y.shape)))),
                  "jacobian": attempt(lambda t=t, x=x, y=y: t.log_abs_det_jacobian(x, y)),
                  "domain": attempt(lambda t=t: repr(t.domain)), "codomain": attempt(lambda t=t: repr(t.codomain)),
                  "sign": attempt(lambda t=t: t.sign), "cached": attempt(lambda t=t, x=x: (
                      lambda c: c.inv(c(x)) is x)(t.with_cache(1)))}
        y.sin().sum().backward()
        result["grad"] = x.grad
        found.append(result)
    got, want = found
    for label in want:
        compare(got[label], want[label], label, 1e-4)


def test_constraints_and_registry():
    def run(module):
        c, D = module.distributions.constraints, module.distributions
        x = module.tensor([[0.2, 0.8], [-1.0, 2.0], [0.0, 1.0], [3.0, math.nan]])
        checks = [c.real, c.positive, c.nonnegative, c.unit_interval, c.boolean, c.simplex, c.one_hot,
                  c.nonnegative_integer, c.positive_integer, c.real_vector, c.integer_interval(0, 2),
                  c.half_open_interval(0.0, 1.0), c.less_than(1.0), c.greater_than_eq(0.2), c.multinomial(3),
                  c.independent(c.positive, 1)]
        found = [check.check(x) for check in checks]
        matrix = module.tensor([[[2.0, 0.0], [0.5, 1.0]], [[1.0, 0.3], [0.3, 1.0]], [[1.0, 3.0], [3.0, 1.0]]])
        found += [check.check(matrix) for check in (c.lower_triangular, c.lower_cholesky, c.square, c.symmetric)]
        found += [c.positive_definite.check(matrix[1:]), c.positive_semidefinite.check(matrix[1:])]
        for target in (c.real, c.positive, c.unit_interval, c.interval(1.0, 3.0), c.greater_than(2.0),
                       c.less_than(-1.0), c.simplex):
            found += [repr(D.biject_to(target)), repr(D.transform_to(target)), D.transform_to(target)(x[:2])]
        return found

    for number, (got, want) in enumerate(zip(run(ours), run(torch), strict=True)):
        compare(got, want, str(number))
    check_error(lambda m: m.distributions.biject_to(m.distributions.constraints.boolean), words=False)


ERRORS = [
    lambda m: m.distributions.Normal(0.0, -1.0),
    lambda m: m.distributions.Normal(m.zeros(2), m.tensor([1.0, -1.0])),
    lambda m: m.distributions.Normal(0.0, 1.0).log_prob(m.tensor(math.nan)),
    lambda m: m.distributions.Normal(0.0, 1.0).log_prob(1.0),
    lambda m: m.distributions.Normal("a", 1.0),
    lambda m: m.distributions.Normal(m.zeros(2), 1.0).log_prob(m.zeros(3)),
    lambda m: m.distributions.Normal(m.zeros(2), 1.0).expand([3]),
    lambda m: m.distributions.Normal(m.zeros(2), m.ones(3)),
    lambda m: m.distributions.Categorical(m.tensor([-1.0, 2.0])),
    lambda m: m.distributions.Categorical(m.tensor(1.0)),
    lambda m: m.distributions.Categorical(),
    lambda m: m.distributions.Categorical(m.ones(2), m.ones(2)),
    lambda m: m.distributions.Categorical(m.ones(3)).log_prob(m.tensor(7)),
    lambda m: m.distributions.Bernoulli(0.5).log_prob(m.tensor(0.3)),
    lambda m: m.distributions.Bernoulli(1.5),
    lambda m: m.distributions.Bernoulli(0.5, 0.3),
    lambda m: m.distributions.Geometric(0.0),
    lambda m: m.distributions.Uniform(1.0, 0.0),
    lambda m: m.distributions.Dirichlet(m.tensor(1.0)),
    lambda m: m.distributions.Dirichlet(m.tensor([1.0, -1.0])),
    lambda m: m.distributions.Gamma(m.tensor([1.0, 0.0]), 1.0),
    lambda m: m.distributions.Multinomial(m.tensor([1, 2]), m.ones(2)),
    lambda m: m.distributions.MultivariateNormal(m.zeros(2)),
    lambda m: m.distributions.MultivariateNormal(m.zeros(2), m.tensor([[1.0, 2.0], [2.0, 1.0]])),
    lambda m: m.distributions.MultivariateNormal(m.tensor(0.0), m.eye(2)),
    lambda m: m.distributions.MultivariateNormal(m.zeros(2), m.eye(2)).log_prob(m.zeros(3)),
    lambda m: m.distributions.Independent(m.distributions.Normal(0.0, 1.0), 1),
    lambda m: m.distributions.MixtureSameFamily(m.distributions.Normal(0.0, 1.0), m.distributions.Normal(0.0, 1.0)),
    lambda m: m.distributions.MixtureSameFamily(m.distributions.Categorical(m.ones(2)),
                                                m.distributions.Normal(m.zeros(3), 1.0)),
    lambda m: m.distributions.TransformedDistribution(m.distributions.Normal(0.0, 1.0), 3),
    lambda m: m.distributions.TransformedDistribution(m.distributions.Normal(0.0, 1.0),
                                                      m.distributions.StickBreakingTransform()),
    lambda m: m.distributions.Binomial(m.tensor([2, 3]), m.tensor(0.5)).enumerate_support(),
    lambda m: m.distributions.kl_divergence(m.distributions.Cauchy(0.0, 1.0), m.distributions.Normal(0.0, 1.0)),
    lambda m: m.distributions.ReshapeTransform((2,), (3,)),
    lambda m: m.poisson(m.tensor([-1.0])),
    lambda m: m.poisson(m.tensor([1])),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    check_error(ERRORS[number])


def test_errors_without_a_word():
    check_error(lambda m: m.distributions.Normal(0.0, 1.0).enumerate_support(), words=False)
    check_error(lambda m: m.distributions.Bernoulli(0.5).rsample(), words=False)


def test_validation_can_be_switched_off():
    for module in (ours, torch):
        d = module.distributions.Normal(0.0, -1.0, validate_args=False)
        assert math.isnan(float(d.log_prob(module.tensor(0.0))))
        module.distributions.Distribution.set_default_validate_args(False)
        try:
            module.distributions.Normal(0.0, -1.0)
        finally:
            module.distributions.Distribution.set_default_validate_args(True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_streams_of_counts(dtype):
    """Element by element in the order of the result, however many words each takes."""
    chance = np.random.default_rng(0)
    rates = (chance.uniform(0, 1, (40, 60)) * np.resize([0.0, 1.0, 8.0, 30.0, 200.0], 60), dtype)
    trials = (np.floor(chance.uniform(0, 1, (40, 60)) * np.resize([0.0, 1.0, 20.0, 300.0], 60)), dtype)
    odds = (np.where(chance.uniform(0, 1, (40, 60)) < 0.9, chance.uniform(0, 1, (40, 60)), [0.0, 1.0, 0.5] * 20), dtype)

    def run(module):
        module.manual_seed(3)
        rate, trial, p = (make(module, one, False) for one in (rates, trials, odds))
        return [module.poisson(rate), module.poisson(rate.t()), module.binomial(trial, p), module.poisson(rate[0, 0]),
                module.binomial(trial[:, :1] + 5, p), module.rand(3), module.poisson(rate[:0])]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch resizes what it broadcasts, and says so
        for got, want in zip(run(ours), run(torch), strict=True):
            assert np.array_equal(to_numpy(got), to_numpy(want))


def test_matrices_of_normal_vectors():
    for build in (FAMILIES["mvn"], FAMILIES["mvn, precision"], FAMILIES["mvn, tril"], FAMILIES["low rank"]):
        made = []
        for module in (ours, torch):
            d = build[1](module.distributions, *[make(module, (c, "float64"), False) for c, _ in build[0]])
            made.append((d.scale_tril, d.covariance_matrix, d.precision_matrix, d.variance))
        for got, want in zip(*made, strict=True):
            assert_same(got, want, "matrix", 1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_stream(dtype):
    alpha = (np.random.default_rng(0).uniform(0.05, 6.0, 3000), dtype)
    ours.manual_seed(5)
    torch.manual_seed(5)
    ours.randn(3)
    torch.randn(3)
    got = ours._standard_gamma(make(ours, alpha, False))
    want = torch._standard_gamma(make(torch, alpha, False))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4)
    assert np.array_equal(ours.get_rng_state().numpy(), torch.get_rng_state().numpy())


def test_policy_gradient_program():
    """A typical use: draws and log-probabilities in a loss, with an entropy bonus."""
    def run(module):
        module.manual_seed(0)
        policy = module.nn.Linear(4, 3)
        optimizer = module.optim.Adam(policy.parameters(), lr=0.1)
        for _ in range(5):
            d = module.distributions.Categorical(logits=policy(module.ones(6, 4)))
            action = d.sample()
            loss = -(d.log_prob(action) * (action == 1).float()).mean() - 0.01 * d.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [loss.detach(), policy.weight.detach(), action]

    for got, want in zip(run(ours), run(torch), strict=True):
        assert_same(got, want, "policy")


def test_wishart():
    def run(module):
        scale = module.tensor([[2.0, 0.3], [0.3, 1.0]])
        found = [module.distributions.Wishart(module.tensor([4.0, 5.5]), covariance_matrix=scale.expand(2, 2, 2)),
                 module.distributions.Wishart(module.tensor(3.5), scale_tril=module.linalg.cholesky(scale))]
        value = module.tensor([[3.0, 0.5], [0.5, 2.0]])
        module.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch 2.13 takes regular samples for singular
            drawn = [one.sample(shape) for one in found for shape in ((), (3,), (2, 2))]
        # Without a batch: for batches, what PyTorch 2.13 gives is not the mean of the difference of logarithms.
        wider = module.distributions.Wishart(module.tensor(5.0), covariance_matrix=scale * 1.5)
        divergence = module.distributions.kl_divergence
        apart = [divergence(found[1], wider), divergence(wider, found[1])]
        return [*drawn, *apart, *(fact for one in found for fact in
                                  (one.mean, one.mode, one.variance, one.log_prob(value), one.entropy()))]

    for got, want in zip(run(ours), run(torch), strict=True):
        assert_same(got, want, "Wishart")


def test_helpers():
    def run(module):
        utils = importlib.import_module(f"{module.__name__}.distributions.utils")
        module.manual_seed(0)
        vector = module.arange(6.0)
        return [utils._standard_normal((2, 3), module.float32, "cpu"), utils._sum_rightmost(module.ones(2, 3, 4), 2),
                *utils.broadcast_all(1.0, module.ones(2)), utils.clamp_probs(module.tensor([0.0, 0.5, 1.0])),
                utils.probs_to_logits(module.tensor([0.2, 0.8])), utils.probs_to_logits(module.tensor(0.3), True),
                utils.logits_to_probs(module.tensor([0.2, 0.8])), utils.vec_to_tril_matrix(vector),
                utils.vec_to_tril_matrix(vector, -1), utils.tril_matrix_to_vec(module.arange(9.0).reshape(3, 3)),
                utils.tril_matrix_to_vec(module.arange(9.0).reshape(3, 3), -1)]

    for got, want in zip(run(ours), run(torch), strict=True):
        assert_same(got, want, "helper")


def test_a_users_distribution():
    def run(module):
        D = module.distributions

        class Squashed(D.TransformedDistribution):
            def __init__(self, loc, scale):
                super().__init__(D.Normal(loc, scale), [D.TanhTransform(cache_size=1)])

            @property
            def mean(self):
                return module.tanh(self.base_dist.mean)

        module.manual_seed(0)
        d = D.Independent(Squashed(module.zeros(3), module.ones(3)), 1)
        x = d.rsample((2,))
        found = [x, d.log_prob(x), d.mean, repr(d.event_shape)]
        with pytest.raises(NotImplementedError, match=r"custom \.expand"):
            Squashed(module.zeros(3), module.ones(3)).expand((2, 3))
        return found

    for got, want in zip(run(ours), run(torch), strict=True):
        assert_same(got, want, "user's", 1e-4)
