"""Gradients that were scaled so that they do not underflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import BOOL, NpuArray, all_dims, like, new
from ..call import CALLS
from .registry import HOST, composed


@composed("unscale")
def unscale(grad: NpuArray, inverse: Any) -> bool:
    """Multiply a gradient in place; returns whether it held an infinity or NaN, and waits for the device."""
    finite, every = like(grad, BOOL), new(grad, (), BOOL)
    CALLS.IsFinite(grad, finite)
    CALLS.All(finite, all_dims(finite), False, every)
    if inverse != 1:
        CALLS.InplaceMuls(grad, float(inverse))
    return not bool(HOST[0](every))


@composed("update_scale")
def update_scale(scale: NpuArray, growth_tracker: NpuArray, found_inf: NpuArray, growth_factor: float,
                 backoff_factor: float, growth_interval: int) -> NpuArray:
    """Shrink the scale after a step with infinite gradients, grow it after enough steps without."""
    if HOST[0](found_inf).item():
        CALLS.InplaceMuls(scale, backoff_factor)
        CALLS.InplaceZero(growth_tracker)
        return scale
    successful = HOST[0](growth_tracker).item() + 1
    if successful == growth_interval:
        if math.isfinite(np.float32(HOST[0](scale).item()) * np.float32(growth_factor)):
            CALLS.InplaceMuls(scale, growth_factor)
        successful = 0
    CALLS.InplaceFillScalar(growth_tracker, successful)
    return scale
