"""In-place kernels for the ops that optimizers live on: they write into their first array instead of a new one.

Each handles the common case (one floating type, one shape) itself and leaves the rest to the functional kernel, whose
result the dispatcher then stores.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch.promotion import scalar_array
from . import binary
from .arithmetic import scaled_operand, subtract

Array = Any
PLAIN = frozenset((np.dtype(np.float32), np.dtype(np.float64)))


def _alike(*arrays: Array) -> bool:
    first = arrays[0]
    return first.dtype in PLAIN and all(a.dtype is first.dtype and a.shape == first.shape for a in arrays[1:])


def add_into(a: Array, b: Array, alpha: Any) -> Array:
    """`a += alpha b`."""
    if alpha != 1:
        b = scaled_operand(b, alpha)
    return np.add(a, b, a)


def subtract_into(a: Array, b: Array, alpha: Any) -> Array:
    """`a -= alpha b`."""
    if a.dtype == np.bool_:
        return subtract(a, b)
    if alpha != 1:
        b = scaled_operand(b, alpha)
    return np.subtract(a, b, a)


def lerp_scalar_into(a: Array, end: Array, weight: Any) -> Array:
    """`a += weight (end - a)` for a weight below one half; the other half counts from the far end."""
    if not _alike(a, end) or not abs(weight) < 0.5:
        return binary.lerp_scalar(a, end, weight)
    step = np.subtract(end, a)
    step *= scalar_array(weight, a.dtype)
    return np.add(a, step, a)


def addcmul_into(a: Array, b: Array, c: Array, value: Any) -> Array:
    """`a += value b c`."""
    if not _alike(a, b, c):
        return binary.addcmul(a, b, c, value)
    product = np.multiply(b, c) if value == 1 else np.multiply(b, scalar_array(value, b.dtype))
    if value != 1:
        product *= c
    return np.add(a, product, a)


def addcdiv_into(a: Array, b: Array, c: Array, value: Any) -> Array:
    """`a += value b / c`."""
    if not _alike(a, b, c):
        return binary.addcdiv(a, b, c, value)
    quotient = np.true_divide(b, c) if value == 1 else np.multiply(b, scalar_array(value, b.dtype))
    if value != 1:
        quotient /= c
    return np.add(a, quotient, a)
