"""`torch._refs.linalg`: the functions of `torch.linalg`."""

from __future__ import annotations

from typing import Any

from .. import linalg as _ops
from ._out import reference_of


def __getattr__(name: str) -> Any:
    return reference_of(_ops, name)
