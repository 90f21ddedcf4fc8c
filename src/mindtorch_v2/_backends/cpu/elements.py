"""Elementwise functions that the C kernels know, with their numbers there, in the order of `kernels.h`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import providers

(EXP, LOG, TANH, SIGMOID, ERF, SILU, GELU, GELU_TANH, RELU, SQRT, NEG, ABS, SQUARE, RECIPROCAL, RSQRT) = range(15)
TANH_SLOPE, SIGMOID_SLOPE, SILU_SLOPE, GELU_SLOPE_OF, GELU_TANH_SLOPE, RELU_SLOPE = range(6)
ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM = range(6)
LERP, ADD_PRODUCT, ADD_QUOTIENT, ADD_SCALED = range(4)


def elementwise(kind: int, operands: int = 1) -> Callable[[Any], Any]:
    """Decorator: a function of NumPy arrays gets a shorter way for plain float32 arrays, where the C kernels are there.

    Plain arrays are in row-major order; they have one shape, or one is a number or a row of the other.
    """

    def decorate(function: Any) -> Any:
        return function if providers.native is None else providers.native.Elementwise(kind, operands, function)

    return decorate


add = elementwise(ADD, 2)(np.add)
multiply = elementwise(MULTIPLY, 2)(np.multiply)
divide = elementwise(DIVIDE, 2)(np.true_divide)
exp = elementwise(EXP)(np.exp)
log = elementwise(LOG)(np.log)
tanh = elementwise(TANH)(np.tanh)
sqrt = elementwise(SQRT)(np.sqrt)
