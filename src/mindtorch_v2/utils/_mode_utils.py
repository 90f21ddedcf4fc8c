"""`torch.utils._mode_utils`: running below a program's own dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from .._dispatch.dispatch_modes import DisableTorchDispatch

__all__ = ["all_same_mode", "no_dispatch"]


def no_dispatch() -> AbstractContextManager[Any]:
    """Inside, tensors with `__torch_dispatch__` are treated as plain ones."""
    return DisableTorchDispatch()


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all are one and the same."""
    return all(mode is modes[0] for mode in modes)
