"""`torch._refs.special`: the functions of `torch.special`."""

from __future__ import annotations

from typing import Any

from .. import special as _ops
from ._out import reference_of


def __getattr__(name: str) -> Any:
    return reference_of(_ops, name)
