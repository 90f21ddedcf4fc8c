"""`torch.autograd.forward_ad`: tensors with tangents."""

from __future__ import annotations

from typing import Any

from .._autograd.forward import (
    UnpackedDualTensor,
    dual_level,
    enter_dual_level,
    exit_dual_level,
    make_dual,
    unpack_dual,
)
from .._autograd.forward import is_fwd_grad_enabled as _is_fwd_grad_enabled
from .._autograd.forward import set_fwd_grad_enabled as _set_fwd_grad_enabled
from .._tensor import LEVELS

__all__ = ["UnpackedDualTensor", "_is_fwd_grad_enabled", "_set_fwd_grad_enabled", "dual_level", "enter_dual_level",
           "exit_dual_level", "make_dual", "unpack_dual"]


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return len(LEVELS) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
