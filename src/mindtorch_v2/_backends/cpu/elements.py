"""Elementwise functions that have C kernels, with their numbers there, in the order of `kernels.h`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dtype import bfloat16
from . import providers

(LOG_GAMMA, DIGAMMA, TRIGAMMA, EXP, LOG, TANH, SIGMOID, ERF, SILU, GELU, GELU_TANH, RELU, SQRT, NEG, ABS, SQUARE,
 RECIPROCAL, RSQRT) = range(18)
TANH_SLOPE, SIGMOID_SLOPE, SILU_SLOPE, GELU_SLOPE_OF, GELU_TANH_SLOPE, RELU_SLOPE = range(6)
ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM = range(6)
LERP, ADD_PRODUCT, ADD_QUOTIENT, ADD_SCALED = range(4)
(CLAMP, CLAMP_SLOPE, HARD_SIGMOID, HARD_SIGMOID_SLOPE, HARD_SWISH, HARD_SWISH_SLOPE, LEAKY, LEAKY_SLOPE, SOFT_SHRINK,
 SHRINK_SLOPE, ELU, ELU_SLOPE, ELU_SLOPE_OF_RESULT, SOFT_PLUS, SOFT_PLUS_SLOPE, LOG_SIGMOID, LOG_SIGMOID_SLOPE,
 SMOOTH_L1, SMOOTH_L1_SLOPE, HUBER, HUBER_SLOPE, SQUARED_DIFFERENCE, DIFFERENCE_TIMES, SIGN,
 SUM_OF_SCALED) = range(25)
SUM, PRODUCT, LARGEST, SMALLEST, SQUARES = range(5)
(TO_FLOAT16, OF_FLOAT16, TO_BFLOAT16, OF_BFLOAT16, BYTES_TO_INTEGERS, FLAGS_TO_INTEGERS, BYTES_TO_FLOAT32,
 FLAGS_TO_FLOAT32, FLOAT32_TO_FLOAT64, FLOAT64_TO_FLOAT32, FLOAT32_TO_INTEGERS, INTEGERS_TO_FLOAT32,
 FLOAT64_TO_INTEGERS, INTEGERS_TO_FLOAT64, INT32_TO_INTEGERS, INTEGERS_TO_INT32, INT32_TO_FLOAT32, FLOAT32_TO_FLAGS,
 INTEGERS_TO_FLAGS, FLOAT32_TO_BYTES) = range(20)


def formula(kind: int, a: Any, b: Any | None = None, p: float = 0.0, q: float = 0.0, r: float = 0.0,
            out: Any | None = None) -> Any:
    """A function of one or two plain float32 arrays of one shape and some numbers by the C kernels, or None."""
    if providers.native is None:
        return None
    return providers.native.formula(kind, out, a, a if b is None else b, p, q, r)


if providers.native is not None:
    providers.native.set_bfloat16(bfloat16.np.num)


def elementwise(kind: int, operands: int = 1) -> Callable[[Any], Any]:
    """Decorator: gives a function of NumPy arrays a faster path for plain float32 arrays, if there are C kernels.

    Plain arrays are in row-major order; they have one shape, or one is a number, a row or a column of the other. Arrays
    of 16-bit floats of one shape are computed in float32 and rounded once.
    """

    def decorate(function: Any) -> Any:
        return function if providers.native is None else providers.native.Elementwise(kind, operands, function)

    return decorate


def shared(ufunc: Any) -> Any:
    """A NumPy ufunc that uses several threads for large arrays; its inner loops are NumPy's."""
    if providers.native is None or not isinstance(ufunc, np.ufunc) or ufunc.nin > 2 or ufunc.nout != 1:
        return ufunc
    return providers.native.Elementwise(-1, ufunc.nin, ufunc)


add = elementwise(ADD, 2)(np.add)
multiply = elementwise(MULTIPLY, 2)(np.multiply)
divide = elementwise(DIVIDE, 2)(np.true_divide)
exp = elementwise(EXP)(np.exp)
log = elementwise(LOG)(np.log)
tanh = elementwise(TANH)(np.tanh)
sqrt = elementwise(SQRT)(np.sqrt)
