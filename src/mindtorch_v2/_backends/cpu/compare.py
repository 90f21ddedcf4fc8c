"""Comparison, selection and bit kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.promotion import (
    FLOAT_DTYPES,
    REAL_FLOATS,
    pretty,
    promote_arrays,
    promote_list,
    result_dtype,
    scalar_array,
    stored_scalar,
)
from ..._dispatch.steps import step
from ..._dtype import FROM_NUMPY
from . import providers
from .elements import shared
from .memory import to
from .pointwise import broadcasting, unsupported
from .select import fill_where, select

Array = Any
BOOL = np.dtype(np.bool_)
Function = Callable[..., Any]

# Bounds that do not change the dtype of a floating tensor.
PLAIN = frozenset((int, float, type(None)))


def ordered(name: str, function: Function) -> Function:
    """An ordering: complex numbers have none."""

    def kernel(a: Array, b: Array) -> Array:
        if a.dtype.kind == "c":
            raise unsupported(f"{name}_cpu", a.dtype)
        return function(a, b)

    return kernel


def of_bits(name: str, function: Function) -> Function:
    """A bit operation: for integers and booleans only."""

    def kernel(a: Array, *rest: Array) -> Array:
        if a.dtype in FLOAT_DTYPES:
            raise unsupported(name, a.dtype)
        return function(a, *rest)

    return kernel


def of_integers(name: str, function: Function) -> Function:
    """An operation on the bits of integers, which booleans do not have."""

    def kernel(a: Array, *rest: Array) -> Array:
        if a.dtype.kind == "b":
            raise unsupported(name, a.dtype)
        return function(a, *rest)

    return of_bits(name, kernel)


def shift_left(a: Array, b: Array) -> Array:
    """`a << b`; the result is 0 if b is negative or not less than the width."""
    bits = a.dtype.itemsize * 8
    too_far = (b < 0) | (b >= bits)
    return np.where(too_far, np.zeros((), a.dtype), np.left_shift(a, np.where(too_far, 0, b).astype(a.dtype)))


def shift_right(a: Array, b: Array) -> Array:
    """`a >> b`; only the sign remains if b is negative or not less than the width."""
    bits = a.dtype.itemsize * 8
    last = bits - 1 if a.dtype.kind == "i" else bits
    too_far = (b < 0) | (b >= bits)
    kept = np.right_shift(a, np.where(too_far, 0, b).astype(a.dtype))
    sign = np.right_shift(a, np.asarray(last, a.dtype)) if a.dtype.kind == "i" else np.zeros((), a.dtype)
    return np.where(too_far, sign, kept)


_unlike = shared(np.not_equal)


def logical(function: Function) -> Function:
    """A logical operation on truth values: each operand is compared with zero in its own dtype."""

    def kernel(a: Array, b: Array) -> Array:
        return function(a if a.dtype is BOOL else _unlike(a, np.zeros((), a.dtype)),
                        b if b.dtype is BOOL else _unlike(b, np.zeros((), b.dtype)))

    return kernel


def logical_not(a: Array) -> Array:
    """Whether an element is zero."""
    return np.equal(a, np.zeros((), a.dtype))


@providers.direct("where")
@broadcasting
def where(condition: Array, a: Array, b: Array) -> Array:
    """Elements of a where the condition holds, of b elsewhere."""
    if condition.dtype != np.bool_:
        if condition.dtype != np.uint8:
            raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype "
                               f"{pretty(FROM_NUMPY[condition.dtype])}")
        condition = condition != 0
    if a.dtype is not b.dtype:
        a, b = promote_arrays(a, b)
    return select(condition, a, b)


@step("aten::where", "self_out", lambda target, condition, value: (condition, value, target))
def put_where(target: Array, condition: Array, value: Array) -> Array:
    """A value where the condition holds, written into an array whose other elements stay."""
    fill_where(target, condition, value)
    return target


def equal(a: Array, b: Array) -> bool:
    """Whether shape and all elements are equal."""
    if a.dtype != b.dtype:
        a, b = promote_arrays(a, b)
    return a.shape == b.shape and bool(np.all(np.equal(a, b)))


@providers.direct("clamp")
def clamp(a: Array, low: Any, high: Any) -> Array:
    """Limited to two numbers, either of which may be missing. NaN stays; if low > high the result is high."""
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if a.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    wanted = a.dtype
    if wanted not in FLOAT_DTYPES or type(low) not in PLAIN or type(high) not in PLAIN:
        wanted = result_dtype([a], [bound for bound in (low, high) if bound is not None]).np
        if wanted.kind == "c":
            raise NotImplementedError("clamp is not supported for complex types")
        if wanted.kind == "b":
            raise unsupported("clamp_min_scalar_cpu" if high is None else "clamp_max_scalar_cpu" if low is None else
                              "clamp_scalar_cpu", wanted)
    return _clamped(to(a, wanted), low, high)


def _bound(value: Any, a: Array) -> Array:
    """One end of the range, which an integer type must be able to hold."""
    return (stored_scalar if a.dtype.kind in "iu" else scalar_array)(value, a.dtype)


def _clamped(a: Array, low: Any, high: Any) -> Array:
    # A bound that is NaN makes everything NaN, as `maximum` and `minimum` do.
    if low is None:
        return np.minimum(a, _bound(high, a))
    a = np.maximum(a, _bound(low, a))
    return a if high is None else np.minimum(a, _bound(high, a), out=a if a.shape else None)


@broadcasting
def clamp_by_tensors(a: Array, low: Array | None, high: Array | None) -> Array:
    """Limited to two arrays, either of which may be missing."""
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if a.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    bounds = [bound for bound in (low, high) if bound is not None]
    a, *promoted = promote_list([a, *bounds])
    if a.dtype.kind == "c":
        raise unsupported("minimum_cpu" if low is None else "maximum_cpu", a.dtype)
    if a.dtype.kind == "b" and len(bounds) == 2:
        raise unsupported("clamp_cpu", a.dtype)
    if low is not None:
        a = np.maximum(a, promoted.pop(0))
    return a if high is None else np.minimum(a, promoted.pop(0))


def clamp_min(a: Array, low: Any) -> Array:
    """Not less than a number."""
    return _clamped(a, low, None) if a.dtype in REAL_FLOATS and type(low) is not complex else clamp(a, low, None)


def clamp_max(a: Array, high: Any) -> Array:
    """Not more than a number."""
    return _clamped(a, None, high) if a.dtype in REAL_FLOATS and type(high) is not complex else clamp(a, None, high)


def clamp_min_tensor(a: Array, low: Array) -> Array:
    """Not less than an array."""
    return clamp_by_tensors(a, low, None)


def clamp_max_tensor(a: Array, high: Array) -> Array:
    """Not more than an array."""
    return clamp_by_tensors(a, None, high)
