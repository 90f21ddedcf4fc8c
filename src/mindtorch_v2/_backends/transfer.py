"""Copies between devices, always through host memory unless a device knows better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._device import device

# Device type -> (from host array, to host array).
ROUTES: dict[str, tuple[Callable[[np.ndarray, device], Any], Callable[[Any], np.ndarray]]] = {
    "cpu": (lambda array, where: array.copy(), lambda array: array),
}


def transfer(array: Any, where: device) -> Any:
    """The array's contents on another device."""
    source = "cpu" if isinstance(array, np.ndarray) else array.device.type
    if where.type not in ROUTES:
        if where.type == "cuda":
            raise AssertionError("Torch not compiled with CUDA enabled")
        raise RuntimeError(f"device '{where}' is not available in this runtime (available: {', '.join(ROUTES)})")
    return ROUTES[where.type][0](ROUTES[source][1](array), where)
