"""The kernels that are made of several calls, by the keys of their ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Kernel = Callable[..., Any]
COMPOSED: dict[str, Kernel] = {}
# Set by the device: an array's contents on the host, for values that are needed before going on.
HOST: list[Callable[[Any], np.ndarray]] = []
# And the reverse: an array of the host on a device.
TO_DEVICE: list[Callable[[np.ndarray, Any], Any]] = []


def composed(*keys: str) -> Callable[[Kernel], Kernel]:
    """Make the function the kernel of these ops."""

    def register(function: Kernel) -> Kernel:
        for key in keys:
            COMPOSED[key] = function
        return function

    return register
