"""`torch.utils.set_module`."""

from __future__ import annotations

from typing import Any

__all__ = ["set_module"]


def set_module(obj: Any, mod: str) -> None:
    """Say which module an object belongs to, for printing."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
