"""Finds the kernel of an op for an array that is not a NumPy array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Array class -> function from an op to its kernel on that device.
KERNELS: dict[type, Callable[[Any], Callable[..., Any]]] = {}


def device_kernel(op: Any, array: Any) -> Callable[..., Any]:
    """The kernel of `op` on the device of `array`."""
    find = KERNELS.get(type(array))
    if find is None:
        raise TypeError(f"{op.name}(): no device has arrays of type {type(array).__name__}")
    return find(op)
