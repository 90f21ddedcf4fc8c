"""`torch._refs.nn.functional`: the functions of `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from ...nn import functional as _ops
from .._out import reference_of


def __getattr__(name: str) -> Any:
    return reference_of(_ops, name)
