"""`rrelu` while training: slopes drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import random_slopes as kernels
from .._dispatch.dtype_rules import unsupported
from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._random import Generator, engine_of
from .._tensor import Tensor, wrap_known

REST = "Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None"


def _forward(x: Any, noise: Any, lower: float, upper: float, training: bool, generator: Generator | None) -> Any:
    if not training:
        return aten.leaky_relu(wrap_known(x), (lower + upper) / 2)._a
    if x.dtype.kind in "biuc" or x.dtype == np.float16:
        raise unsupported("rrelu_with_noise_out_cpu", x.dtype)
    return kernels.rrelu_with_noise(x, noise, lower, upper, engine_of(generator))


def _forward_(x: Any, noise: Any, lower: float, upper: float, training: bool, generator: Generator | None) -> Any:
    x[...] = _forward(x, noise, lower, upper, training, generator)
    return x


def _backward(grad: Tensor, self: Tensor, noise: Any, lower: float, upper: float, training: bool) -> Any:
    return aten.rrelu_with_noise_backward(grad, self, noise, lower, upper, training, False)


def _backward_(grad: Tensor, result: Any, noise: Any, lower: float, upper: float, training: bool) -> Any:
    return aten.rrelu_with_noise_backward(grad, result, noise, lower, upper, training, True)


declare(f"rrelu_with_noise(Tensor self, Tensor noise, {REST}) -> Tensor", cpu=_forward, where="n", meta="same",
        grad={"self": _backward})
declare(f"rrelu_with_noise.inplace(Tensor self, Tensor noise, {REST}) -> Tensor", cpu_inplace=_forward_, where="n",
        meta="same", node="RreluWithNoiseBackward1", grad={"self": _backward_})
declare("rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, "
        "bool training, bool self_is_result) -> Tensor", cpu=kernels.rrelu_backward, where="n",
        node="RreluWithNoiseBackwardBackward0",
        grad={"grad_output": lambda grad, self, noise, lower, upper, training: aten.rrelu_with_noise_backward(
            grad, self, noise, lower, upper, training, False),
            "self": lambda grad, self: aten.zeros_like(self)})


def _rrelu(self: Tensor, lower: float, upper: float, training: bool, generator: Generator | None) -> Tensor:
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    return aten.rrelu_with_noise(self, aten.empty_like(self), lower, upper, training, generator)


def _rrelu_(self: Tensor, lower: float, upper: float, training: bool, generator: Generator | None) -> Tensor:
    return aten.rrelu_with_noise___inplace(self, aten.empty_like(self), lower, upper, training, generator)


declare("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
        "Generator? generator=None) -> Tensor", composite=_rrelu, where="f")
declare("rrelu_(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
        "Generator? generator=None) -> Tensor", composite=_rrelu_, where="f")
