"""`torch.fx.passes`: `shape_prop`; the other passes are refused."""

from __future__ import annotations

from typing import Any

from ..._outside import attribute


def __getattr__(name: str) -> Any:
    return attribute("fx.passes", name)
