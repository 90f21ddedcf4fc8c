"""Dropout in all its forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._random import engine_of
from .._tensor import Tensor

# SELU saturates at minus this value, which alpha dropout sets dropped elements to.
SATURATION = 1.7580993408473766


def _noise_like(input: Tensor, by_feature: bool) -> Tensor:
    """Room for one random number per element, or per channel of each sample."""
    if not by_feature:
        return aten.empty_like(input)
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input._a.shape[:2], *(1,) * (input.ndim - 2))
    return aten.new_empty(input, shape)


def _form(by_feature: bool, alpha: bool, inplace: bool) -> Any:
    def apply(input: Tensor, p: float, train: bool) -> Tensor:
        if not 0 <= p <= 1:
            raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
        multiply = aten.mul_ if inplace else aten.mul
        if p == 0 or not train or input._a.size == 0:
            return input
        if p == 1:
            return multiply(input, aten.zeros((), dtype=input.dtype, device=input.device))
        noise = aten.bernoulli___float(_noise_like(input, by_feature), 1 - p)
        if not alpha:
            return multiply(input, aten.div_(noise, 1 - p))
        # Scale and shift so that mean and variance stay what they were.
        scale = 1.0 / math.sqrt((SATURATION * SATURATION * p + 1) * (1 - p))
        shift = aten.add_(aten.mul_(aten.add(noise, -1), SATURATION * scale), SATURATION * scale * p)
        kept = multiply(input, aten.mul_(noise, scale))
        return aten.add_(kept, shift)

    return apply


for _name, _by_feature, _alpha in (("dropout", False, False), ("feature_dropout", True, False),
                                   ("alpha_dropout", False, True), ("feature_alpha_dropout", True, True)):
    declare(f"{_name}(Tensor input, float p, bool train) -> Tensor", composite=_form(_by_feature, _alpha, False),
            where="f")
    declare(f"{_name}_(Tensor self, float p, bool train) -> Tensor", composite=_form(_by_feature, _alpha, True),
            where="f")


def _native_dropout(input: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    if train is False:
        return input.copy(), np.ones(input.shape, np.bool_)
    mask = engine_of(None).bernoulli(input.shape, np.dtype(np.bool_), 1 - p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return (input * mask * input.dtype.type(scale)).astype(input.dtype, copy=False), mask


def _native_dropout_backward(grad: Any, mask: Any, scale: float) -> Any:
    """Integers are scaled as float32, as a product with a Python number is."""
    kind = grad.dtype if grad.dtype.kind not in "biu" else np.dtype(np.float32)
    return (grad * mask * kind.type(scale)).astype(kind, copy=False)


declare(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", cpu=_native_dropout, where="f",
    differentiable=(0,),
    grad={"input": lambda grad, result1, p, train: aten.native_dropout_backward(
        grad, result1, 1.0 if train is False else 0.0 if p == 1 else 1 / (1 - p))},
)
declare(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", where="n",
    cpu=_native_dropout_backward,
    grad={"grad_output": lambda grad, mask, scale: grad * mask * scale},
)
