"""`torch.backends.mps`: Apple's GPUs are not supported."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False


def is_built() -> bool:
    """False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False: this is not macOS."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """False."""
    return False
