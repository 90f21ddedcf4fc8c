"""`torch._environment`: which build of PyTorch a program runs on."""

from __future__ import annotations

__all__ = ["is_fbcode"]


def is_fbcode() -> bool:
    """Whether this is the internal build of PyTorch's owner: no."""
    return False
