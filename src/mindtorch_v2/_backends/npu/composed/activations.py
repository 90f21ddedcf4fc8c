"""Activations and their gradients, made of elementary operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...slope_checks import refuse_negative_slope
from ..arrays import NpuArray, new, one_dim
from .arithmetic import clamp
from .expressions import (
    above,
    absolute,
    at_most,
    difference,
    exponential,
    floating,
    plus,
    product,
    sigmoid,
    sum_of,
    tanh,
    times,
)
from .functions import softplus
from .places import cat, cut, masked_fill
from .registry import composed
from .truth import where


@composed("elu_backward")
def elu_backward(grad: NpuArray, alpha: Any, scale: Any, input_scale: Any, is_result: bool,
                 self: NpuArray) -> NpuArray:
    """The gradient of an exponential below zero, from the operand or from the result."""
    if is_result:
        refuse_negative_slope("elu", alpha)
    slope = (times(plus(self, alpha * scale), input_scale) if is_result
             else times(exponential(times(clamp(self, None, 0.0), input_scale)), alpha * scale * input_scale))
    return where(at_most(self, 0), product(grad, slope), times(grad, scale))


@composed("mish")
def mish(self: NpuArray) -> NpuArray:
    """An operand times the hyperbolic tangent of its smooth corner."""
    return product(self, tanh(softplus(self, 1, 20)))


@composed("mish_backward")
def mish_backward(grad: NpuArray, self: NpuArray) -> NpuArray:
    """Its gradient."""
    inner = tanh(softplus(self, 1, 20))
    slope = product(product(self, sigmoid(self)), plus(times(product(inner, inner), -1), 1))
    return product(grad, sum_of(inner, slope))


@composed("hardshrink")
def hardshrink(self: NpuArray, lambd: Any) -> NpuArray:
    """Zero for elements near zero."""
    floating("hardshrink", self)
    return masked_fill(self, _is_near(self, lambd), 0)


def _is_near(self: NpuArray, bound: Any) -> NpuArray:
    """Where a number is not larger than the bound, compared in the dtype."""
    return at_most(absolute(self), float(np.asarray(bound, self.dtype)))


@composed("softshrink")
def softshrink(self: NpuArray, lambd: Any) -> NpuArray:
    """Moved towards zero by a number."""
    floating("softshrink", self)
    if lambd < 0:
        raise RuntimeError(f"lambda must be in range [0, 3.40282e+38] for input dtype Float, but found {lambd}")
    return difference(self, clamp(self, -lambd, lambd))


@composed("hardshrink_backward", "softshrink_backward")
def shrink_backward(grad: NpuArray, self: NpuArray, lambd: Any) -> NpuArray:
    """The gradient of elements that are not near zero."""
    return masked_fill(grad, _is_near(self, lambd), 0)


@composed("log_sigmoid_forward")
def log_sigmoid(self: NpuArray) -> tuple[NpuArray, NpuArray]:
    """The logarithm of a sigmoid; it saves nothing for the gradient."""
    return times(softplus(times(self, -1), 1, 20), -1), new(self, (0,))


@composed("log_sigmoid_backward")
def log_sigmoid_backward(grad: NpuArray, self: NpuArray, buffer: NpuArray) -> NpuArray:
    """Its gradient."""
    return product(grad, sigmoid(times(self, -1)))


@composed("_prelu_kernel")
def prelu(self: NpuArray, weight: NpuArray) -> NpuArray:
    """A leaky corner with a learned slope."""
    return where(above(self, 0), self, product(self, weight))


@composed("_prelu_kernel_backward")
def prelu_backward(grad: NpuArray, self: NpuArray, weight: NpuArray) -> tuple[NpuArray, NpuArray]:
    """The gradients of the operand and of the slope, element by element."""
    high = above(self, 0)
    return where(high, grad, product(grad, weight)), masked_fill(product(grad, self), high, 0)


def _halves(self: NpuArray, dim: int) -> tuple[NpuArray, NpuArray, int]:
    dim = one_dim(self, dim)
    extent = self.shape[dim]
    if extent % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {extent}")
    return cut(self, dim, 0, extent // 2), cut(self, dim, extent // 2, extent // 2), dim


@composed("glu")
def glu(self: NpuArray, dim: int) -> NpuArray:
    """One half times the sigmoid of the other half."""
    first, second, _ = _halves(self, dim)
    return product(first, sigmoid(second))


@composed("glu_backward")
def glu_backward(grad: NpuArray, self: NpuArray, dim: int) -> NpuArray:
    """The gradients of both halves."""
    first, second, dim = _halves(self, dim)
    gate = sigmoid(second)
    kept = product(grad, gate)
    return cat([kept, product(product(kept, first), plus(times(gate, -1), 1))], dim)
