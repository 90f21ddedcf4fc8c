"""In-place kernels for the ops of optimizers: they write into their first array instead of a new one.

Each handles the common case (one floating type, one shape) itself and leaves the rest to the functional kernel, whose
result the dispatcher then stores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import scalar_array
from . import binary, providers
from .arithmetic import ONE, check_alpha, scaled_operand, subtract, sum_in_float32
from .elements import ADD_PRODUCT, ADD_QUOTIENT, ADD_SCALED, LERP, add
from .wide import HALVES

Array = Any
PLAIN = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def _alike(*arrays: Array) -> bool:
    first = arrays[0]
    return first.dtype in PLAIN and all(a.dtype is first.dtype and a.shape == first.shape for a in arrays[1:])


def _updated(kind: int, a: Array, b: Array, c: Array, value: Any) -> bool:
    """Try to update `a` by the C kernels."""
    native = providers.native
    return (native is not None and type(value) in (int, float)
            and native.update(kind, a, a, b, c, value) is not None)


def add_into(a: Array, b: Array, alpha: Any) -> Array:
    """`a += alpha b`."""
    if alpha is not ONE:
        if _updated(ADD_SCALED, a, b, b, alpha):
            return a
        if a.dtype in HALVES:
            return sum_in_float32(a, b, alpha)
        b = scaled_operand(b, alpha)
    return add(a, b, a)


def subtract_into(a: Array, b: Array, alpha: Any) -> Array:
    """`a -= alpha b`."""
    if a.dtype == np.bool_:
        return subtract(a, b)
    if alpha is not ONE:
        if a.dtype in HALVES:
            check_alpha(b, alpha)
            return sum_in_float32(a, b, -alpha)
        b = scaled_operand(b, alpha)
    return np.subtract(a, b, a)


def lerp_scalar_into(a: Array, end: Array, weight: Any) -> Array:
    """`a += weight (end - a)` for a weight below one half; the other half counts from the far end."""
    if abs(weight) < 0.5 and _updated(LERP, a, end, end, weight):
        return a
    if not _alike(a, end) or not abs(weight) < 0.5:
        return binary.lerp_scalar(a, end, weight)
    step = np.subtract(end, a)
    step *= scalar_array(weight, a.dtype)
    return np.add(a, step, a)


def addcmul_into(a: Array, b: Array, c: Array, value: Any) -> Array:
    """`a += value b c`."""
    if a.dtype == np.bool_:
        return binary.addcmul(a, b, c, value)
    if _updated(ADD_PRODUCT, a, b, c, value):
        return a
    if not _alike(a, b, c):
        return binary.addcmul(a, b, c, value)
    product = np.multiply(b, c) if value == 1 else np.multiply(b, scalar_array(value, b.dtype))
    if value != 1:
        product *= c
    return np.add(a, product, a)


def addcdiv_into(a: Array, b: Array, c: Array, value: Any) -> Array:
    """`a += value b / c`."""
    if _updated(ADD_QUOTIENT, a, b, c, value):
        return a
    if not _alike(a, b, c):
        return binary.addcdiv(a, b, c, value)
    quotient = np.true_divide(b, c) if value == 1 else np.multiply(b, scalar_array(value, b.dtype))
    if value != 1:
        quotient /= c
    return np.add(a, quotient, a)
