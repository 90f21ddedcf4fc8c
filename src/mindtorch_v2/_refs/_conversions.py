"""`torch._refs._conversions`: a tensor in another dtype, as its methods make it."""

from __future__ import annotations

from typing import Any

from .._dispatch.namespace import aten
from .._tensor import Tensor


def __getattr__(name: str) -> Any:
    return getattr(aten, name) if name in ("complex", "polar") else getattr(Tensor, name)
