"""`torch.fx._compatibility`: how PyTorch marks functions that stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that leaves what it is given as it is."""
    return lambda marked: marked
