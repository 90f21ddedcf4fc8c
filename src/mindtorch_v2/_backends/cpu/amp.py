"""Kernels of gradient scaling."""

from __future__ import annotations

import numpy as np


def unscale(grad: np.ndarray, inverse: np.floating) -> bool:
    """Multiply a gradient in place; returns whether it held an infinity or NaN."""
    found = not np.isfinite(grad).all()
    if inverse != 1:
        np.multiply(grad, inverse, out=grad, casting="unsafe")
    return found


def update_scale(scale: np.ndarray, growth_tracker: np.ndarray, found_inf: np.ndarray, growth_factor: float,
                 backoff_factor: float, growth_interval: int) -> np.ndarray:
    """Shrink the scale after a step with infinite gradients, grow it after enough steps without."""
    if found_inf.item():
        scale *= np.float32(backoff_factor)
        growth_tracker[...] = 0
        return scale
    successful = growth_tracker.item() + 1
    if successful == growth_interval:
        grown = scale * np.float32(growth_factor)
        # A scale that has become infinite would never recover.
        if np.isfinite(grown).all():
            scale[...] = grown
        growth_tracker[...] = 0
    else:
        growth_tracker[...] = successful
    return scale
