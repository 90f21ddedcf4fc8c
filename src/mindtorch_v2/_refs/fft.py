"""`torch._refs.fft`: the functions of `torch.fft`."""

from __future__ import annotations

from typing import Any

from .. import fft as _ops


def __getattr__(name: str) -> Any:
    return getattr(_ops, name)
