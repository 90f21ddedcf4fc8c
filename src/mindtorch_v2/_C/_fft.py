"""`torch._C._fft`: the functions of `torch.fft` under their ops' names."""

from __future__ import annotations

from typing import Any

from .. import fft


def __getattr__(name: str) -> Any:
    if name.startswith("fft_"):
        return getattr(fft, name.removeprefix("fft_"))
    raise AttributeError(f"module 'torch._C._fft' has no attribute '{name}'")
