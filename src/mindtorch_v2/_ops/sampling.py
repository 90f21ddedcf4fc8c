"""Samples of gamma, Dirichlet, Poisson and binomial distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import implicit_gradient, rng_counts
from .._backends.cpu import rng_rejection as kernels
from .._backends.cpu.rng_checks import FLOATING, require
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._dtype import FROM_NUMPY, cpp_name
from .._random import Generator, engine_of
from .._tensor import Tensor
from .formulas import NOT_IMPLEMENTED, not_implemented


def _gamma(a: Any, generator: Generator | None) -> Any:
    require(a.dtype, FLOATING, "gamma")
    drawn = kernels.standard_gamma(engine_of(generator), a).astype(a.dtype)
    # Zero is no gamma number: what is too small becomes the smallest number with full precision.
    smallest = np.finfo(np.float64).tiny if a.dtype.itemsize == 8 else np.finfo(np.float32).tiny
    return np.maximum(drawn, np.asarray(smallest).astype(a.dtype)) if a.dtype.itemsize > 2 else drawn


def _dirichlet(a: Any, generator: Generator | None) -> Any:
    require(a.dtype, FLOATING, "dirichlet")
    return kernels.dirichlet(engine_of(generator), a).astype(a.dtype)


def _poisson(a: Any, generator: Generator | None) -> Any:
    require(a.dtype, FLOATING, "poisson_cpu")
    return rng_counts.poisson(engine_of(generator), a).astype(a.dtype)


def _binomial(count: Any, prob: Any, generator: Generator | None) -> Any:
    for name, one in (("count", count), ("prob", prob)):
        if not FROM_NUMPY[one.dtype].is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: "
                             f"{cpp_name(FROM_NUMPY[one.dtype].name)}")
    if prob.dtype != count.dtype:
        raise RuntimeError(f"Found dtype {cpp_name(FROM_NUMPY[prob.dtype].name)} but expected "
                           f"{cpp_name(FROM_NUMPY[count.dtype].name)}")
    return rng_counts.binomial(engine_of(generator), count, prob).astype(count.dtype)


declare("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", cpu=_gamma, where="n",
        grad={"self": lambda grad, self, result: grad * aten._standard_gamma_grad(self, result)})
declare("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", where="f",
        cpu=lambda a, x: implicit_gradient.gamma_gradient(x, a).astype(a.dtype),
        grad={("self", "output"): not_implemented("_standard_gamma_grad")})


def _dirichlet_backward(grad: Tensor, self: Tensor, result: Any) -> Any:
    total = aten.expand_as(aten.sum(self, -1, True), self)
    return aten._dirichlet_grad(result, self, total) * (grad - aten.sum(grad * result, -1, True))


declare("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", cpu=_dirichlet, where="f",
        grad={"self": _dirichlet_backward})
declare("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", where="f",
        cpu=lambda x, alpha, total: implicit_gradient.dirichlet_gradient(x, alpha, total).astype(x.dtype),
        grad={("x", "alpha", "total"): not_implemented("_dirichlet_grad")})
declare("poisson(Tensor self, Generator? generator=None) -> Tensor", cpu=_poisson, where="n",
        grad={"self": lambda grad: aten.zeros_like(grad)})
declare("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", cpu=_binomial, where="n",
        node=NOT_IMPLEMENTED, grad={("count", "prob"): not_implemented("binomial")})


@choose("poisson", where="f")
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Counts of Poisson distributions with the rates found in `input`."""
    return aten.poisson__default(input, generator)


@choose("binomial", where="f")
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of successes among `count` trials of probability `prob`.

    Computed in float64. PyTorch computes in `count`'s dtype: in float32, single numbers differ by one where there are
    some hundred thousand trials.
    """
    return aten.binomial__default(count, prob, generator)


@choose("_standard_gamma", where="f")
def standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma numbers of rate 1 with the shapes found in `input`."""
    return aten._standard_gamma__default(input, generator)
