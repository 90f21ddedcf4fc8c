"""`torch.fx._compatibility`: how PyTorch marks functions that stay compatible."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that changes nothing."""
    return lambda marked: marked
