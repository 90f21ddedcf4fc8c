"""Event numbers that are unique in this process, over all recordings."""

from __future__ import annotations

import threading

from .._forking import held_across_forks

_LOCK = held_across_forks(threading.Lock())
_next = 1


def reserve(count: int) -> int:
    """The first of `count` numbers, reserved for the caller."""
    global _next
    with _LOCK:
        first = _next
        _next += count
    return first
