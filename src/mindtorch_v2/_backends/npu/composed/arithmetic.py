"""Arithmetic of tensors with numbers, rounding and bounds."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch.promotion import differing_arrays, differing_number, promote_number, result_dtype
from ..arrays import BOOL, FLOAT32, NpuArray, converted, filled, like, new, placed, spread
from ..call import CALLS
from .registry import composed


@composed("mul.Scalar")
def mul_scalar(self: NpuArray, other: Any) -> NpuArray:
    """A tensor times a number, which may change its dtype."""
    a, value = promote_number(self, other)
    out = like(a)
    CALLS.Muls(a, value, out)
    return out


@composed("add.Scalar")
def add_scalar(self: NpuArray, other: Any, alpha: Any) -> NpuArray:
    """A tensor plus a number."""
    a, value = promote_number(self, other)
    out = like(a)
    CALLS.Adds(a, value, alpha, out)
    return out


@composed("sub.Scalar")
def sub_scalar(self: NpuArray, other: Any, alpha: Any) -> NpuArray:
    """A tensor minus a number."""
    a, value = differing_number(self, other)
    out = like(a)
    CALLS.Subs(a, value, alpha, out)
    return out


@composed("rsub.Tensor")
def rsub(self: NpuArray, other: Any, alpha: Any) -> NpuArray:
    """The other operand minus this one."""
    self, other = differing_arrays(self, placed(other, self))
    out = spread(self, other)
    CALLS.Sub(other, self, alpha, out)
    return out


@composed("rsub.Scalar")
def rsub_scalar(self: NpuArray, other: Any, alpha: Any) -> NpuArray:
    """A number minus a tensor."""
    a, value = differing_number(self, other)
    out = like(a)
    CALLS.Sub(placed(value, a, a.dtype), a, alpha, out)
    return out


@composed("pow.Tensor_Scalar")
def pow_scalar(self: NpuArray, exponent: Any) -> NpuArray:
    """A power with a number as exponent."""
    a, value = promote_number(self, exponent)
    if a.dtype.kind in "iu" and exponent < 0:  # not `value`, which has no sign beside bytes
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    out = like(a)
    if abs(value) == 0.5 and a.dtype.kind not in "iu":
        # Roots differ from powers at -0 and at minus infinity, and PyTorch computes roots.
        (CALLS.Sqrt if value > 0 else CALLS.Rsqrt)(a, out)
        return out
    CALLS.PowTensorScalar(a, value, out)
    return out


@composed("pow.Scalar")
def pow_of_number(self: Any, exponent: NpuArray) -> NpuArray:
    """A power with a number as base."""
    a, value = promote_number(exponent, self)
    out = like(a)
    CALLS.PowScalarTensor(value, a, out)
    return out


ROUNDING = {None: 0, "trunc": 1, "floor": 2}


@composed("div.Tensor_mode")
def divide_rounded(self: NpuArray, other: Any, rounding_mode: str | None) -> NpuArray:
    """A rounded quotient."""
    if rounding_mode not in ROUNDING:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                           f"'{rounding_mode}'")
    other = placed(other, self)
    out = spread(self, other)
    CALLS.DivMod(self, other, ROUNDING[rounding_mode], out)
    return out


@composed("floor_divide")
def floor_divide(self: NpuArray, other: Any) -> NpuArray:
    """A quotient rounded down."""
    return divide_rounded(self, other, "floor")


def left_over(self: NpuArray, other: NpuArray, mode: str) -> NpuArray:
    if self.dtype.itemsize == 2 and self.dtype.kind not in "iu":  # too few digits for a large quotient
        return converted(left_over(converted(self, FLOAT32), converted(other, FLOAT32), mode), self.dtype)
    quotient = divide_rounded(self, other, mode)
    product = like(quotient)
    CALLS.Mul(quotient, other, product)
    if quotient.dtype.kind not in "iu":
        nothing = like(quotient, BOOL)  # also of infinity
        CALLS.EqScalar(quotient, 0, nothing)
        CALLS.InplaceMaskedFillScalar(product, nothing, 0)
    CALLS.Sub(self, product, 1, quotient)
    return quotient


@composed("remainder.Tensor")
def remainder(self: NpuArray, other: Any) -> NpuArray:
    """The remainder of a quotient that is rounded down."""
    return left_over(self, placed(other, self), "floor")


@composed("remainder.Scalar")
def remainder_scalar(self: NpuArray, other: Any) -> NpuArray:
    """The remainder for a number."""
    a, value = promote_number(self, other)
    return left_over(a, placed(value, a, a.dtype), "floor")


@composed("fmod.Tensor")
def fmod(self: NpuArray, other: Any) -> NpuArray:
    """The remainder of a quotient that is rounded towards zero."""
    return left_over(self, placed(other, self), "trunc")


@composed("fmod.Scalar")
def fmod_scalar(self: NpuArray, other: Any) -> NpuArray:
    """The remainder for a number, with the sign of the tensor."""
    a, value = promote_number(self, other)
    return left_over(a, placed(value, a, a.dtype), "trunc")


@composed("clamp")
def clamp(self: NpuArray, low: Any, high: Any) -> NpuArray:
    """Limited to two numbers, either of which may be missing."""
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        return filled(self.shape, self.dtype, self.memory.device.index, math.nan)
    a, first = promote_number(self, high if low is None else low)
    if low is not None and high is not None:
        a, second = promote_number(a, high)
        out = like(a)
        CALLS.Clamp(a, first, second, out)
        return out
    out = like(a)
    if high is None:
        CALLS.ClampMin(a, first, out)
    else:
        CALLS.Minimum(a, placed(first, a, a.dtype), out)
    return out


@composed("clamp_min")
def clamp_min(self: NpuArray, low: Any) -> NpuArray:
    """At least a number."""
    return clamp(self, low, None)


@composed("clamp_max")
def clamp_max(self: NpuArray, high: Any) -> NpuArray:
    """At most a number."""
    return clamp(self, None, high)


@composed("hardtanh")
def hardtanh(self: NpuArray, low: Any, high: Any) -> NpuArray:
    """Limited to two numbers, which lose their fractions with integers."""
    return clamp(self, int(low), int(high)) if self.dtype.kind in "iu" else clamp(self, low, high)


@composed("lerp.Tensor")
def lerp(self: NpuArray, end: NpuArray, weight: Any) -> NpuArray:
    """From one tensor to another, by a part of the way that a tensor gives; from the nearer end, so both are exact."""
    weight = placed(weight, self)
    if not weight.shape:  # then it is promoted like a number
        kind = result_dtype([self, weight], []).np
        self, end, weight = converted(self, kind), converted(end, kind), converted(weight, kind)
    near, far, size = spread(self, end, weight), spread(self, end, weight), like(weight)
    way, rest, is_near = new(self, near.shape), like(weight), like(weight, BOOL)
    CALLS.Sub(end, self, 1, way)
    CALLS.Addcmul(self, weight, way, 1, near)
    CALLS.Adds(weight, -1, 1, rest)
    CALLS.Addcmul(end, rest, way, 1, far)
    CALLS.Abs(weight, size)
    CALLS.LtScalar(size, 0.5, is_near)
    out = like(near)
    CALLS.SWhere(is_near, near, far, out)
    return out
