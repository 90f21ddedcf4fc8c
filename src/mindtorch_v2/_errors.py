"""Exceptions that devices raise, under PyTorch's names."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """A device reported an error; `error_code` is the number it gave."""

    __module__ = "torch"
    error_code: int = 0


class OutOfMemoryError(RuntimeError):
    """A device has no memory left."""

    __module__ = "torch"
