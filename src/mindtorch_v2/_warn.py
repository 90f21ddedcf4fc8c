"""Warnings that are given once in a process, as PyTorch gives most of its own."""

from __future__ import annotations

import warnings

_GIVEN: set[str] = set()


class Always:
    """Whether a program asked for every warning (`torch.set_warn_always`)."""

    wanted = False


def warn_once(message: str, stacklevel: int = 3) -> None:
    """A UserWarning at the first call with this message, nothing after; each time if the program asked for that."""
    if message not in _GIVEN or Always.wanted:
        _GIVEN.add(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)
