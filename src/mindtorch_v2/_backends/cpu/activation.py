"""Activation functions and their backwards.

The float32 kernels reuse one temporary. On small arrays the number of NumPy calls decides the time, on large ones the
memory that they touch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES, scalar_array, stored_scalar
from ..._dispatch.steps import step
from ..slope_checks import refuse_negative_slope
from . import providers
from .elements import (
    CLAMP,
    CLAMP_SLOPE,
    ELU,
    ELU_SLOPE,
    ELU_SLOPE_OF_RESULT,
    HARD_SIGMOID,
    HARD_SIGMOID_SLOPE,
    HARD_SWISH,
    HARD_SWISH_SLOPE,
    LEAKY,
    LEAKY_SLOPE,
    LOG_SIGMOID,
    LOG_SIGMOID_SLOPE,
    RELU,
    RELU_SLOPE,
    SHRINK_SLOPE,
    SIGMOID_SLOPE,
    SILU,
    SILU_SLOPE,
    SOFT_PLUS,
    SOFT_PLUS_SLOPE,
    SOFT_SHRINK,
    TANH_SLOPE,
    elementwise,
    exp,
    formula,
)
from .gelu import GELU_CUBIC as GELU_CUBIC
from .gelu import GELU_SLOPE as GELU_SLOPE
from .gelu import gelu as gelu
from .gelu import gelu_backward as gelu_backward
from .memory import empty_beside, empty_like, empty_like_contiguous
from .pointwise import FLOAT32, ONES, ZEROS, broadcasting, scratch, sigmoid, unsupported
from .real_floats import floats_only
from .select import fill_where, select

Array = Any

INT8 = np.dtype(np.int8)
# Above this size, more calls that each do less per element are faster.
LARGE = 2048


# -- piecewise linear functions ----------------------------------------------------------------------------------------


@elementwise(RELU)
def _not_negative(a: Array, out: Array | None = None) -> Array:
    return _not_below(a, ZEROS[a.dtype], out)


def _not_below(a: Array, low: Array, out: Array | None) -> Array:
    """The larger number, and of two zeros that of the array: NumPy takes the second one, of float16 the first."""
    return np.maximum(a, low, out=out) if a.dtype == np.float16 else np.maximum(low, a, out=out)


@step("aten::clamp_min")
def clamp_min(a: Array, low: Any) -> Array:
    """Not less than a number."""
    return _not_negative(a) if low == 0 else np.maximum(a, scalar_array(low, a.dtype))


@step("aten::clamp_min_")
def clamp_min_(a: Array, low: Any) -> Array:
    """`clamp_min` into its argument."""
    return _not_negative(a, a) if low == 0 else np.maximum(a, scalar_array(low, a.dtype), out=a)


def relu(a: Array) -> Array:
    """Not less than 0."""
    if a.dtype.kind in "bc":
        _refuse(a, "Boolean inputs not supported for relu")
    return clamp_min(a, 0)


def relu_inplace(a: Array) -> Array:
    """`relu` into its argument."""
    if a.dtype.kind in "bc":
        _refuse(a, "Boolean inputs not supported for relu")
    return clamp_min_(a, 0)


def _refuse(a: Array, text: str) -> None:
    if a.dtype.kind == "b":
        raise RuntimeError(text)
    raise NotImplementedError("clamp is not supported for complex types")


def threshold(a: Array, limit: Any, value: Any) -> Array:
    """`value` where a is not above `limit`."""
    return select(a <= stored_scalar(limit, a.dtype), stored_scalar(value, a.dtype), a)


def threshold_backward(grad: Array, a: Array, limit: Any) -> Array:
    """The gradient where a is above `limit`."""
    if limit == 0 and providers.elements(grad, a):
        return _slope(RELU_SLOPE, grad, a)
    return stopped(np.less_equal(a, ZEROS[a.dtype] if limit == 0 else scalar_array(limit, a.dtype)), grad)


def _slope(kind: int, grad: Array, a: Array) -> Array:
    """The gradient of a function that has a C kernel."""
    made = np.empty(a.shape, FLOAT32)
    providers.native.slope(kind, made, grad, a)
    return made


def stopped(closed: Array, grad: Array) -> Array:
    """The gradient, 0 where the function is closed."""
    if closed.size < LARGE or grad.dtype != FLOAT32 or closed.shape != grad.shape:
        return np.where(closed, ZEROS[grad.dtype], grad)
    # By masking bits: `where` branches at every element, and a product would turn infinities into NaN.
    mask = _open_bytes(closed).astype(np.int32)
    np.bitwise_and(mask, grad.view(np.int32), mask)
    return mask.view(np.float32)


def _open_bytes(closed: Array) -> Array:
    """All bits of a byte where it is not closed, none where it is."""
    return np.subtract(closed.view(np.int8), ONES[INT8])


def hardtanh(a: Array, low: Any, high: Any) -> Array:
    """Kept between two numbers."""
    _check_hardtanh(a, low, high)
    return _hardtanh_into(a, low, high, empty_like(a, a.dtype))


def hardtanh_inplace(a: Array, low: Any, high: Any) -> Array:
    """`hardtanh` into its argument."""
    _check_hardtanh(a, low, high)
    return _hardtanh_into(a, low, high, a)


def _check_hardtanh(a: Array, low: Any, high: Any) -> None:
    if a.dtype.kind in "bc":
        _refuse(a, "Bool inputs not supported for hardtanh")
    if a.dtype.kind == "u" and (low < 0 or high < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if a.dtype.kind in "iu":
        for limit in (low, high):
            stored_scalar(limit, a.dtype)


@step("aten::hardtanh", "out")
def _hardtanh_into(a: Array, low: Any, high: Any, out: Array) -> Array:
    return _clamp_into(a, low, high, out)


@step("aten::clamp", "out")
def _clamp_into(a: Array, low: Any, high: Any, out: Array) -> Array:
    if low <= high and a.dtype is FLOAT32 and (made := formula(CLAMP, a, None, low, high, out=out)) is not None:
        return made
    return np.minimum(_not_below(a, scalar_array(low, a.dtype), out), scalar_array(high, a.dtype), out=out)


def hardtanh_backward(grad: Array, a: Array, low: Any, high: Any) -> Array:
    """The gradient strictly between the two numbers."""
    made = empty_beside(a, grad.dtype)
    if formula(CLAMP_SLOPE, grad, a, low, high, out=made) is not None:
        return made
    outside = a <= scalar_array(low, a.dtype)
    outside |= a >= scalar_array(high, a.dtype)
    if outside.size < LARGE or grad.dtype != FLOAT32 or outside.shape != grad.shape:
        np.copyto(made, grad)
        np.copyto(made, ZEROS[grad.dtype], where=outside)
        return made
    bits = made.view(np.int32)
    np.copyto(bits, _open_bytes(outside))
    np.bitwise_and(bits, grad.view(np.int32), bits)
    return made


@floats_only("hardsigmoid_cpu")
def hardsigmoid(a: Array) -> Array:
    """`(a + 3) / 6` kept in [0, 1]."""
    if (made := formula(HARD_SIGMOID, a)) is not None:
        return made
    t = _clamped_to_six(a, np.empty_like(a))
    return np.true_divide(t, scalar_array(6.0, a.dtype), t)


@floats_only("hardsigmoid_backward")
def hardsigmoid_backward(grad: Array, a: Array) -> Array:
    """A sixth of the gradient strictly between -3 and 3."""
    if (made := formula(HARD_SIGMOID_SLOPE, grad, a)) is not None:
        return made
    inside = (a > -3) & (a < 3)
    return select(inside, grad / scalar_array(6.0, a.dtype), ZEROS[grad.dtype])


@floats_only("hardswish_cpu")
def hardswish(a: Array) -> Array:
    """`a` times `hardsigmoid(a)`."""
    t = empty_beside(a, a.dtype)
    if formula(HARD_SWISH, a, out=t) is not None:
        return t
    _clamped_to_six(a, t)
    np.multiply(t, a, t)
    return np.true_divide(t, scalar_array(6.0, a.dtype), t)


@floats_only("hardswish_cpu")
def hardswish_inplace(a: Array) -> Array:
    """`hardswish` into its argument."""
    if formula(HARD_SWISH, a, out=a) is not None:
        return a
    np.multiply(_clamped_to_six(a, np.empty_like(a)), a, a)
    return np.true_divide(a, scalar_array(6.0, a.dtype), a)


def _clamped_to_six(a: Array, t: Array) -> Array:
    """`a + 3` kept in [0, 6], in given memory."""
    np.add(a, scalar_array(3.0, a.dtype), t)
    np.maximum(t, ZEROS[a.dtype], out=t)
    return np.minimum(t, scalar_array(6.0, a.dtype), out=t)


@floats_only("hardswish_backward_cpu")
def hardswish_backward(grad: Array, a: Array) -> Array:
    """Gradient of `hardswish`."""
    made = empty_beside(a, a.dtype)
    if formula(HARD_SWISH_SLOPE, grad, a, out=made) is not None:
        return made
    np.true_divide(a, scalar_array(3.0, a.dtype), made)
    np.add(made, scalar_array(0.5, a.dtype), made)
    np.multiply(grad, made, made)
    # Usually few elements are outside, which makes these fast. Also where a is NaN.
    np.copyto(made, ZEROS[a.dtype], where=a <= -3)
    np.copyto(made, grad, where=~(a < 3))
    return made


@floats_only("leaky_relu_cpu")
def leaky_relu(a: Array, slope: Any) -> Array:
    """`a` above zero, `slope * a` below."""
    if (made := formula(LEAKY, a, None, slope)) is not None:
        return made
    t = scratch(np.multiply(a, scalar_array(slope, a.dtype)))
    if 0 <= slope <= 1:
        return np.maximum(a, t, out=t)
    return select(a > 0, a, t)


@floats_only("leaky_relu_backward_cpu")
def leaky_relu_backward(grad: Array, a: Array, slope: Any, self_is_result: bool) -> Array:
    """Gradient of `leaky_relu`."""
    if self_is_result:
        refuse_negative_slope("leakyReLu", slope)
    if (made := formula(LEAKY_SLOPE, grad, a, slope)) is not None:
        return made
    return select(a > 0, grad, grad * scalar_array(slope, grad.dtype))


@floats_only("hardshrink_cpu")
def hardshrink(a: Array, bound: Any) -> Array:
    """0 within `bound` of zero."""
    return select(np.abs(a) <= scalar_array(bound, a.dtype), ZEROS[a.dtype], a)


@floats_only("softshrink_check")
def softshrink(a: Array, bound: Any) -> Array:
    """Moved toward zero by `bound`, not past it."""
    if bound < 0:
        raise RuntimeError(f"lambda must be in range [0, 3.40282e+38] for input dtype Float, but found {bound}")
    if (made := formula(SOFT_SHRINK, a, None, bound)) is not None:
        return made
    edge = scalar_array(bound, a.dtype)
    return a - np.minimum(np.maximum(a, -edge), edge)


@floats_only("shrink_backward_cpu")
def shrink_backward(grad: Array, a: Array, bound: Any) -> Array:
    """The gradient farther than `bound` from zero."""
    if (made := formula(SHRINK_SLOPE, grad, a, bound)) is not None:
        return made
    return stopped(np.abs(a) <= scalar_array(bound, a.dtype), grad)


@broadcasting
@floats_only("prelu_cpu")
def prelu(a: Array, weight: Array) -> Array:
    """`a` above zero, `weight * a` below."""
    made = np.multiply(weight, a, empty_like(a, a.dtype))
    fill_where(made, a > 0, a)
    return made


@floats_only("prelu_backward_cpu")
def prelu_backward(grad: Array, a: Array, weight: Array) -> tuple[Array, Array]:
    """Gradients of `prelu`; the weight's must still be summed."""
    positive = a > 0
    return select(positive, grad, weight * grad), select(positive, ZEROS[a.dtype], a * grad)


# -- made of exponentials ------------------------------------------------------------------------------------------


@providers.direct("sigmoid_backward")
def sigmoid_backward(grad: Array, output: Array) -> Array:
    """`grad * output * (1 - output)`."""
    if providers.elements(grad, output):
        return _slope(SIGMOID_SLOPE, grad, output)
    if grad.dtype is not FLOAT32 and grad.dtype.itemsize == 2:
        return np.asarray(sigmoid_backward(grad.astype(FLOAT32), output.astype(FLOAT32))).astype(grad.dtype)
    t = scratch(np.subtract(ONES[output.dtype], output))
    np.multiply(t, output, t)
    if t.dtype.kind == "c":
        np.conjugate(t, t)
    return np.multiply(t, grad, t)


@providers.direct("tanh_backward")
def tanh_backward(grad: Array, output: Array) -> Array:
    """`grad * (1 - output²)`."""
    if providers.elements(grad, output):
        return _slope(TANH_SLOPE, grad, output)
    if grad.dtype is not FLOAT32 and grad.dtype.itemsize == 2:
        return np.asarray(tanh_backward(grad.astype(FLOAT32), output.astype(FLOAT32))).astype(grad.dtype)
    t = scratch(np.multiply(output, output))
    np.subtract(ONES[output.dtype], t, t)
    if t.dtype.kind == "c":
        np.conjugate(t, t)
    return np.multiply(t, grad, t)


@elementwise(SILU)
def silu(a: Array) -> Array:
    """`a * sigmoid(a)`."""
    dtype = a.dtype
    if dtype is not FLOAT32:
        if dtype not in FLOAT_DTYPES:
            raise unsupported("silu_cpu", dtype)
        if dtype.itemsize == 2:
            return np.asarray(silu(a.astype(FLOAT32))).astype(dtype)
    t = scratch(np.negative(a))
    np.exp(t, t)
    np.add(t, ONES[dtype], t)
    return np.true_divide(a, t, t)


@floats_only("silu_backward_cpu")
def silu_backward(grad: Array, a: Array) -> Array:
    """`grad * s * (1 + a * (1 - s))` with s the sigmoid."""
    if providers.elements(grad, a):
        return _slope(SILU_SLOPE, grad, a)
    s = sigmoid(a)
    t = scratch(np.subtract(ONES[a.dtype], s))
    np.multiply(t, a, t)
    np.add(t, ONES[a.dtype], t)
    np.multiply(t, s, t)
    return np.multiply(t, grad, t)


def _softplus_tanh(a: Array) -> Array:
    """`tanh(log(1 + exp(a)))`, as a quotient of polynomials in the exponential; above 20 it is 1."""
    two = scalar_array(2.0, a.dtype)
    t = scratch(np.minimum(a, scalar_array(20.0, a.dtype)))
    np.exp(t, t)
    np.multiply(t, np.add(t, two), t)
    return np.true_divide(t, np.add(t, two), t)


@floats_only("mish_cpu")
def mish(a: Array) -> Array:
    """`a * tanh(softplus(a))`."""
    return np.multiply(a, _softplus_tanh(a))


@floats_only("mish_backward_cpu")
def mish_backward(grad: Array, a: Array) -> Array:
    """Gradient of `mish`."""
    t = _softplus_tanh(a)
    return grad * (t + a * sigmoid(a) * (ONES[a.dtype] - t * t))


@floats_only("softplus_cpu")
def softplus(a: Array, beta: Any, limit: Any) -> Array:
    """`log(1 + exp(beta a)) / beta`; a itself where beta a is above the limit."""
    if (made := formula(SOFT_PLUS, a, None, beta, limit)) is not None:
        return made
    scale = scalar_array(beta, a.dtype)
    z = a * scale
    return np.where(z > limit, a, np.log1p(np.exp(z)) / scale)


@floats_only("softplus_backward_cpu")
def softplus_backward(grad: Array, a: Array, beta: Any, limit: Any) -> Array:
    """Gradient of `softplus`."""
    if (made := formula(SOFT_PLUS_SLOPE, grad, a, beta, limit)) is not None:
        return made
    z = np.asarray(a * scalar_array(beta, a.dtype))
    return np.where(z > limit, grad, grad * sigmoid(z))


@floats_only("log_sigmoid_cpu")
def log_sigmoid_forward(a: Array) -> tuple[Array, Array]:
    """`log(sigmoid(a))`, and `exp(-|a|)` for the backward."""
    if not a.flags.c_contiguous:
        a = np.ascontiguousarray(a)
    made, buffer = empty_like_contiguous(a, a.dtype), empty_like_contiguous(a, a.dtype)
    exp(np.negative(np.abs(a, buffer), buffer), buffer)
    if formula(LOG_SIGMOID, a, buffer, out=made) is not None:
        return made, buffer
    np.subtract(np.minimum(a, ZEROS[a.dtype]), np.log1p(buffer, made), made)
    return made, buffer


@floats_only("log_sigmoid_backward_cpu")
def log_sigmoid_backward(grad: Array, a: Array, buffer: Array) -> Array:
    """Gradient of `log_sigmoid`: `grad * sigmoid(-a)`."""
    made = empty_like(grad, grad.dtype)
    if formula(LOG_SIGMOID_SLOPE, grad, a, out=made) is not None:
        return made
    share = scratch(buffer / (ONES[a.dtype] + buffer))
    return np.multiply(grad, select(a < 0, ONES[a.dtype] - share, share), made)


@floats_only("elu_cpu")
def elu(a: Array, alpha: Any, scale: Any, input_scale: Any) -> Array:
    """`scale * a` above zero, `scale * alpha * (exp(input_scale * a) - 1)` below."""
    if (made := formula(ELU, a, None, alpha * scale, scale, input_scale)) is not None:
        return made
    t = scratch(np.minimum(ZEROS[a.dtype], a))
    if input_scale != 1:
        np.multiply(t, scalar_array(input_scale, a.dtype), t)
    np.expm1(t, t)
    np.multiply(t, scalar_array(alpha * scale, a.dtype), t)
    np.multiply(a, scalar_array(scale, a.dtype), t, where=a > 0)
    return t


def elu_backward(grad: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool, a: Array) -> Array:
    """Gradient of `elu` from its input or from its result."""
    if is_result:
        refuse_negative_slope("elu", alpha)
    return _elu_backward(grad, a, alpha, scale, input_scale, is_result)


@floats_only("elu_backward_cpu")
def _elu_backward(grad: Array, a: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool) -> Array:
    slope = ELU_SLOPE_OF_RESULT if is_result else ELU_SLOPE
    if (made := formula(slope, grad, a, alpha * scale, scale, input_scale)) is not None:
        return made
    factor = scalar_array(alpha * scale, a.dtype)
    inner = scalar_array(input_scale, a.dtype)
    below = inner * (a + factor) if is_result else inner * factor * np.exp(np.minimum(a, ZEROS[a.dtype]) * inner)
    if alpha == input_scale == 1 and not is_result:
        return grad * below  # which is `scale` above zero
    return grad * select(a > 0, scalar_array(scale, a.dtype), below)


# -- halves --------------------------------------------------------------------------------------------------------


def _halves(a: Array, dim: int) -> tuple[Array, Array]:
    if not a.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if not -a.ndim <= dim < a.ndim:
        bounds = f"[{-a.ndim}, {a.ndim - 1}]"
        raise IndexError(f"Dimension out of range (expected to be in range of {bounds}, but got {dim})")
    dim %= a.ndim
    extent = a.shape[dim]
    if extent % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {extent}")
    lead = (slice(None),) * dim
    return a[(*lead, slice(extent // 2))], a[(*lead, slice(extent // 2, None))]


@floats_only("glu_cpu")
def glu(a: Array, dim: int) -> Array:
    """The first half times the sigmoid of the second."""
    first, second = _halves(a, dim)
    if providers.elements(a) and a.size:
        made = np.empty(first.shape, a.dtype)
        providers.native.gated(made, None, a, math.prod(a.shape[: dim % a.ndim]))
        return made
    t = sigmoid(second)
    return np.multiply(first, t, t)


@floats_only("glu_backward_cpu")
def glu_backward(grad: Array, a: Array, dim: int) -> Array:
    """Gradient of `glu`."""
    first, second = _halves(a, dim)
    result = np.empty_like(a)
    if providers.elements(a) and providers.elements(grad) and a.size:
        providers.native.gated(result, grad, a, math.prod(a.shape[: dim % a.ndim]))
        return result
    low, high = _halves(result, dim)
    s = sigmoid(np.ascontiguousarray(second))
    np.multiply(grad, s, low)
    np.multiply((ONES[a.dtype] - s) * s, grad * first, high)
    return result
