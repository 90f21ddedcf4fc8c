"""`torch.backends.nnpack`: a library of PyTorch's for small convolutions, which is not used here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["flags", "is_available", "set_flags"]


class _Wish:
    enabled = True


def is_available() -> bool:
    """False."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Say whether it should be used; returns what was said before. Nothing else changes."""
    before = _Wish.enabled
    _Wish.enabled = bool(_enabled)
    return (before,)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """The same for a block."""
    before, = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
