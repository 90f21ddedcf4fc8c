"""`torch._refs.special`: the functions of `torch.special`."""

from __future__ import annotations

from typing import Any

from .. import special as _ops


def __getattr__(name: str) -> Any:
    return getattr(_ops, name)
