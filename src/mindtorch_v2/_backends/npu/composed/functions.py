"""Functions of elements that the operators do not have by themselves."""

from __future__ import annotations

import math
from typing import Any

from ml_dtypes import finfo

from ...slope_checks import refuse_negative_slope
from ..arrays import (
    BOOL,
    FLOAT32,
    NpuArray,
    contiguous,
    converted,
    filled,
    like,
    new,
    one_dim,
    placed,
    reduced,
    spread,
    viewed,
)
from ..call import CALLS
from .arithmetic import clamp, rsub_scalar
from .expressions import (
    at_most,
    below,
    difference,
    exponential,
    floating,
    logarithm,
    plus,
    product,
    quotient,
    same,
    sum_of,
    times,
)
from .places import cat, copied, cut, masked_fill
from .registry import COMPOSED, Kernel, composed
from .sums import sum_dtype
from .truth import is_nan, isneginf, isposinf, negated, where


@composed("ceil")
def ceil(self: NpuArray) -> NpuArray:
    """Rounded up."""
    return negative(_floor(negative(self)))


@composed("trunc")
def trunc(self: NpuArray) -> NpuArray:
    """Rounded towards zero."""
    size, sign, out = like(self), like(self), like(self)
    CALLS.Abs(self, size)
    CALLS.Sign(self, sign)
    CALLS.Mul(_floor(size), sign, out)
    return out


def negative(self: NpuArray) -> NpuArray:
    out = like(self)
    CALLS.Neg(self, out)
    return out


def _floor(self: NpuArray) -> NpuArray:
    out = like(self)
    CALLS.Floor(self, out)
    return out


def _scaled(self: NpuArray, factor: float) -> NpuArray:
    out = like(self)
    CALLS.Muls(self, factor, out)
    return out


def _logarithm(base: int) -> Kernel:
    """The logarithm of a base. Of whole powers it is whole: rounding errors would show in `floor` and `ceil`."""

    def kernel(self: NpuArray) -> NpuArray:
        near = _scaled(logarithm(self), 1 / math.log(base))
        whole = _floor(plus(near, 0.5))
        power = like(self)
        CALLS.PowScalarTensor(base, whole, power)
        return where(same(power, self), whole, near)

    return kernel


COMPOSED["log2"] = _logarithm(2)
COMPOSED["log10"] = _logarithm(10)


@composed("hardsigmoid")
def hardsigmoid(self: NpuArray) -> NpuArray:
    """A sixth of what is between 0 and 6 after adding 3."""
    moved = like(self)
    CALLS.Adds(self, 3, 1, moved)
    return _scaled(clamp(moved, 0.0, 6.0), 1 / 6)


@composed("hardswish")
def hardswish(self: NpuArray) -> NpuArray:
    """An operand times its hard sigmoid."""
    out = like(self)
    CALLS.Mul(self, hardsigmoid(self), out)
    return out


@composed("elu")
def elu(self: NpuArray, alpha: Any, scale: Any, input_scale: Any) -> NpuArray:
    """Exponential below zero, linear above."""
    grown = expm1(_scaled(self, input_scale))
    return where(at_most(self, 0), _scaled(grown, alpha * scale), _scaled(self, scale))


@composed("celu")
def celu(self: NpuArray, alpha: Any) -> NpuArray:
    """`elu` with a slope that has no corner."""
    return elu(self, alpha, 1.0, 1.0 / alpha)


@composed("_safe_softmax")
def safe_softmax(self: NpuArray, dim: int, dtype: Any) -> NpuArray:
    """Softmax, with zeros for a row that has only minus infinity."""
    x = self if dtype is None else converted(self, dtype.np)
    dim = one_dim(x, dim)
    out, top = new(x, x.shape), reduced(x, dim, True)
    if not x.size:
        return out
    CALLS.Softmax(x, dim, out)
    CALLS.Amax(x, (dim,), True, top)
    CALLS.InplaceMaskedFillScalar(out, isneginf(top), 0)
    return out


@composed("round")
def round_(self: NpuArray) -> NpuArray:
    """Rounded to the nearest integer, halves to the even one."""
    if self.dtype.kind in "iu":
        return copied(self)
    down, rest, up, even = _floor(self), like(self), like(self, BOOL), like(self, BOOL)
    CALLS.Sub(self, down, 1, rest)
    half = _scaled(down, 0.5)
    CALLS.EqTensor(_floor(half), half, even)  # whether the integer below is even
    upper = like(self)
    CALLS.Adds(down, 1, 1, upper)
    CALLS.GtScalar(rest, 0.5, up)
    nearest = where(up, upper, down)
    tie = like(self, BOOL)
    CALLS.EqScalar(rest, 0.5, tie)
    return where(tie, where(even, down, upper), nearest)


@composed("softplus")
def softplus(self: NpuArray, beta: Any, threshold: Any) -> NpuArray:
    """A smooth corner: linear where that is exact enough."""
    scaled = _scaled(self, beta)
    size, high = like(self), like(self, BOOL)
    CALLS.Abs(scaled, size)
    CALLS.InplaceMuls(size, -1.0)
    CALLS.InplaceExp(size)
    smooth = log1p(size)  # far below zero, the term added to one is the whole result
    CALLS.InplaceAdd(smooth, clamp(scaled, 0.0, None), 1)
    CALLS.GtScalar(scaled, threshold, high)
    return where(high, self, _scaled(smooth, 1 / beta))


@composed("softplus_backward")
def softplus_backward(grad: NpuArray, self: NpuArray, beta: Any, threshold: Any) -> NpuArray:
    """The gradient of a smooth corner."""
    scaled, slope, high, out = _scaled(self, beta), like(self), like(self, BOOL), spread(self, grad)
    CALLS.Sigmoid(scaled, slope)
    CALLS.GtScalar(scaled, threshold, high)
    CALLS.Mul(grad, slope, out)
    return where(high, grad, out)


@composed("xlogy.Tensor")
def xlogy(self: NpuArray, other: Any) -> NpuArray:
    """A factor times a logarithm; zero where the factor is zero."""
    other = placed(other, self)
    logarithm, out, nothing = like(other), spread(self, other), like(self, BOOL)
    CALLS.Log(other, logarithm)
    CALLS.Mul(self, logarithm, out)
    CALLS.EqScalar(self, 0, nothing)
    nan = is_nan(other)
    keep = spread(nothing, nan)
    CALLS.LogicalAnd(nothing, negated(nan), keep)
    CALLS.InplaceMaskedFillScalar(out, keep, 0)
    return out


@composed("prod.dim_int")
def prod(self: NpuArray, dim: int, keepdim: bool, dtype: Any) -> NpuArray:
    """The product along a dimension: the two halves are multiplied until one element is left."""
    dim = one_dim(self, dim)
    made = converted(self, sum_dtype(self, dtype))
    if not self.ndim:
        return made if made is not self else copied(self)
    out_shape = reduced(self, dim, keepdim).shape
    if not self.shape[dim]:
        return filled(out_shape, made.dtype, made.memory.device.index, 1)
    while made.shape[dim] > 1:
        extent = made.shape[dim]
        half = extent // 2
        pair = new(made, tuple([half if d == dim else n for d, n in enumerate(made.shape)]))
        CALLS.Mul(cut(made, dim, 0, half), cut(made, dim, half, half), pair)
        made = cat([pair, cut(made, dim, extent - 1, 1)], dim) if extent % 2 else pair
    return viewed(contiguous(made if made is not self else copied(self)), out_shape)


@composed("prod")
def prod_of_all(self: NpuArray, dtype: Any) -> NpuArray:
    """The product of all elements."""
    return prod(viewed(contiguous(self), (self.size,)), 0, False, dtype)


@composed("hardsigmoid_backward")
def hardsigmoid_backward(grad: NpuArray, self: NpuArray) -> NpuArray:
    """The gradient of the hard sigmoid: a sixth between -3 and 3."""
    return masked_fill(_scaled(grad, 1 / 6), negated(below(_size(self), 3)), 0.0)


@composed("hardtanh_backward")
def hardtanh_backward(grad: NpuArray, self: NpuArray, low: Any, high: Any) -> NpuArray:
    """The gradient between two numbers, zero outside."""
    below, above, out = like(self, BOOL), like(self, BOOL), spread(self, grad)
    CALLS.LeScalar(self, low, below)
    CALLS.GeScalar(self, high, above)
    CALLS.InplaceCopy(out, grad)
    CALLS.InplaceMaskedFillScalar(out, below, 0.0)
    CALLS.InplaceMaskedFillScalar(out, above, 0.0)
    return out


@composed("hardswish_backward")
def hardswish_backward(grad: NpuArray, self: NpuArray) -> NpuArray:
    """The gradient of an operand times its hard sigmoid: the gradient above 3, none below -3, a line between."""
    slope = plus(_scaled(self, 1 / 3), 0.5)
    return masked_fill(where(below(self, 3), product(grad, slope), grad), at_most(self, -3), 0.0)


@composed("leaky_relu_backward")
def leaky_relu_backward(grad: NpuArray, self: NpuArray, slope: Any, self_is_result: bool) -> NpuArray:
    """The gradient of a leaky corner."""
    if self_is_result:
        refuse_negative_slope("leakyReLu", slope)
    out = spread(self, grad)
    CALLS.LeakyReluBackward(grad, self, slope, self_is_result, out)
    return out


@composed("leaky_relu.inplace/inplace")
def leaky_relu_into(self: NpuArray, negative_slope: Any) -> NpuArray:
    """A leaky corner, in place."""
    out = like(self)
    CALLS.LeakyRelu(self, negative_slope, out)
    CALLS.InplaceCopy(self, out)
    return self


@composed("log1p")
def log1p(self: NpuArray) -> NpuArray:
    """The logarithm of one plus an operand. The rounding error of the sum is corrected by its distance from the
    operand."""
    more = plus(self, 1)
    exact = quotient(product(logarithm(more), self), plus(more, -1))
    near = where(same(more, times(more, 0)), logarithm(more), exact)
    return where(_is_one(more), self, where(same(more, self), logarithm(more), near))


@composed("expm1")
def expm1(self: NpuArray) -> NpuArray:
    """An exponential minus one, also near zero, where the difference alone would have no digits."""
    grown = exponential(self)
    less = plus(grown, -1)
    exact = quotient(product(less, self), logarithm(grown))
    large = where(same(less, grown), grown, where(at_most(less, -1), less, exact))
    return where(_is_one(grown), self, large)


def _is_one(array: NpuArray) -> NpuArray:
    out = like(array, BOOL)
    CALLS.EqScalar(array, 1, out)
    return out


@composed("sinh")
def sinh(self: NpuArray) -> NpuArray:
    """The hyperbolic sine."""
    less, grown = expm1(self), exponential(self)
    near = times(sum_of(less, quotient(less, plus(less, 1))), 0.5)
    return where(at_most(_size(self), 1), near, times(difference(grown, exponential(negative(self))), 0.5))


def _size(array: NpuArray) -> NpuArray:
    out = like(array)
    CALLS.Abs(array, out)
    return out


@composed("cosh")
def cosh(self: NpuArray) -> NpuArray:
    """The hyperbolic cosine."""
    return times(sum_of(exponential(self), exponential(negative(self))), 0.5)


@composed("tan")
def tan(self: NpuArray) -> NpuArray:
    """The tangent."""
    sine, cosine = like(self), like(self)
    CALLS.Sin(self, sine)
    CALLS.Cos(self, cosine)
    return quotient(sine, cosine)


@composed("exp2")
def exp2(self: NpuArray) -> NpuArray:
    """A power of two."""
    out = like(self)
    CALLS.PowScalarTensor(2, self, out)
    return out


@composed("frac")
def frac(self: NpuArray) -> NpuArray:
    """The part after the point."""
    floating("frac", self)
    return difference(self, trunc(self))


@composed("logit")
def logit(self: NpuArray, eps: float | None) -> NpuArray:
    """The logit: the inverse of the sigmoid; bounded first if requested."""
    x = self if eps is None else clamp(self, eps, 1 - eps)
    return logarithm(quotient(x, rsub_scalar(x, 1, 1)))


@composed("logit_backward")
def logit_backward(grad: NpuArray, self: NpuArray, eps: float | None) -> NpuArray:
    """Its gradient: zero outside the bounds, and NaN there without bounds."""
    low = 0.0 if eps is None else eps
    inside = product(difference(self, clamp(self, low, 1 - low)), grad)  # zero inside
    outside = negated(same(inside, times(inside, 0)))
    out = quotient(grad, product(self, rsub_scalar(self, 1, 1)))
    CALLS.InplaceMaskedFillScalar(out, outside, math.nan if eps is None else 0.0)
    return out


@composed("logaddexp")
def logaddexp(self: NpuArray, other: Any) -> NpuArray:
    """The logarithm of a sum of exponentials."""
    other = placed(other, self)
    top, equal = spread(self, other), same(self, other)
    CALLS.Maximum(self, other, top)
    out = sum_of(top, log1p(exponential(negative(_size(difference(self, other))))))
    return where(equal, plus(top, math.log(2)), out)


@composed("nan_to_num")
def nan_to_num(self: NpuArray, nan: float | None, posinf: float | None, neginf: float | None) -> NpuArray:
    """Numbers instead of NaN and infinities."""
    if self.dtype.kind not in "fV":
        return copied(self)
    limit = float(finfo(self.dtype).max)
    out = copied(self)
    CALLS.InplaceMaskedFillScalar(out, is_nan(self), 0.0 if nan is None else nan)
    CALLS.InplaceMaskedFillScalar(out, isposinf(self), limit if posinf is None else posinf)
    CALLS.InplaceMaskedFillScalar(out, isneginf(self), -limit if neginf is None else neginf)
    return out


@composed("elu.inplace/inplace")
def elu_into(self: NpuArray, alpha: Any, scale: Any, input_scale: Any) -> NpuArray:
    """Exponential below zero, in place."""
    CALLS.InplaceCopy(self, elu(self, alpha, scale, input_scale))
    return self


@composed("hypot")
def hypot(self: NpuArray, other: Any) -> NpuArray:
    """The length of the third side, without too large squares."""
    other = placed(other, self)
    a, b = _size(self), _size(other)
    long, short, root = spread(a, b), spread(a, b), spread(a, b)
    CALLS.Maximum(a, b, long)
    CALLS.Minimum(a, b, short)
    ratio = quotient(short, long)
    CALLS.Sqrt(plus(product(ratio, ratio), 1), root)
    # Nothing to divide by: the longer side is the length. NaN stays NaN in it, but not beside an infinity.
    out = where(is_nan(ratio), long, product(long, root))
    for side in (a, b):
        CALLS.InplaceMaskedFillScalar(out, isposinf(side), math.inf)
    return out


@composed("cumprod")
def cumprod(self: NpuArray, dim: int, dtype: Any) -> NpuArray:
    """Products of all elements up to each one: the distance that a product covers doubles in each round."""
    kind = sum_dtype(self, dtype)
    if kind.itemsize == 2 and kind.kind not in "iu":  # products of parts leave a small range, and end in it again
        return converted(cumprod(converted(self, FLOAT32), dim, None), kind)
    made = converted(self, kind)
    made = copied(made) if made is self else made
    dim, reach = one_dim(self, dim), 1
    if not self.ndim:
        return made
    while reach < made.shape[dim]:
        rest = made.shape[dim] - reach
        further = product(cut(made, dim, reach, rest), cut(made, dim, 0, rest))
        CALLS.InplaceCopy(cut(made, dim, reach, rest), further)
        reach *= 2
    return made
