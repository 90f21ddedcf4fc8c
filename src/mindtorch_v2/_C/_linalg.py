"""`torch._C._linalg`: the functions of `torch.linalg` under their ops' names."""

from __future__ import annotations

from typing import Any

from .. import linalg


def __getattr__(name: str) -> Any:
    if name.startswith("linalg_"):
        return getattr(linalg, name.removeprefix("linalg_"))
    raise AttributeError(f"module 'torch._C._linalg' has no attribute '{name}'")
