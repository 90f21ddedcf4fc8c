"""New memory on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._device import device

Allocator = Callable[[tuple[int, ...], np.dtype, device], Any]


def _host(shape: tuple[int, ...], dtype: np.dtype, where: device) -> np.ndarray:
    return np.empty(shape, dtype)


ALLOCATORS: dict[str, Allocator] = {"cpu": _host}


def empty_array(shape: tuple[int, ...], dtype: np.dtype, where: device) -> Any:
    """Uninitialised memory for an array on a device, or an error that names the missing device."""
    allocate = ALLOCATORS.get(where.type)
    if allocate is None:
        if where.type == "cuda":
            raise AssertionError("Torch not compiled with CUDA enabled")
        raise RuntimeError(f"device '{where}' is not available in this runtime (available: {', '.join(ALLOCATORS)})")
    return allocate(shape, dtype, where)
