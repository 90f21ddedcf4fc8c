"""Leaky rectifiers with slopes drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..slope_checks import refuse_negative_slope
from .rng import MersenneGenerator

Array = Any


def rrelu_with_noise(x: Array, noise: Array, lower: float, upper: float, engine: MersenneGenerator) -> Array:
    """Negative elements times slopes from [lower, upper), which are stored in `noise`; the others have slope 1.

    Only negative elements and zeros take a number from the stream, in order.
    """
    below = x <= 0
    noise[...] = 1
    with engine._lock:
        drawn = engine._unit_doubles(int(below.sum()))
    noise[below] = (drawn * (upper - lower) + lower).astype(noise.dtype)
    return (x * noise).astype(x.dtype, copy=False)


def rrelu_backward(grad: Array, x: Array, noise: Array, lower: float, upper: float, training: bool,
                   self_is_result: bool) -> Array:
    """The gradient times the slopes; outside training the slope is the middle one."""
    if training and upper - lower > 1e-6:
        return grad * noise
    slope = (lower + upper) / 2
    if self_is_result:
        refuse_negative_slope("rrelu", slope)
    return np.where(x > 0, grad, grad * np.asarray(slope, grad.dtype))
