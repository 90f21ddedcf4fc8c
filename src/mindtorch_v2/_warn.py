"""Warnings that are given once in a process, as PyTorch gives most of its own."""

from __future__ import annotations

import warnings

_GIVEN: set[str] = set()


def warn_once(message: str, stacklevel: int = 3) -> None:
    """A UserWarning at the first call with this message, nothing after."""
    if message not in _GIVEN:
        _GIVEN.add(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)
