"""`torch._C._special`: the functions of `torch.special` under their ops' names."""

from __future__ import annotations

from typing import Any

from .. import special


def __getattr__(name: str) -> Any:
    if name.startswith("special_"):
        return getattr(special, name.removeprefix("special_"))
    raise AttributeError(f"module 'torch._C._special' has no attribute '{name}'")
