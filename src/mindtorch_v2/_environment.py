"""`torch._environment`: which build of PyTorch a program runs on."""

from __future__ import annotations

__all__ = ["is_fbcode"]


def is_fbcode() -> bool:
    """Whether this is the build that PyTorch's owner uses at home: no."""
    return False
