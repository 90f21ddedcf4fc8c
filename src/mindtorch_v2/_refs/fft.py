"""`torch._refs.fft`: the functions of `torch.fft`."""

from __future__ import annotations

from typing import Any

from .. import fft as _ops
from ._out import reference_of


def __getattr__(name: str) -> Any:
    return reference_of(_ops, name)
