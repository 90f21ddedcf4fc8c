"""Numbers for events that no other event of this process has, whichever recording it is in."""

from __future__ import annotations

import threading

from .._forking import held_across_forks

_LOCK = held_across_forks(threading.Lock())
_next = 1


def reserve(count: int) -> int:
    """The first of `count` numbers that nobody else gets."""
    global _next
    with _LOCK:
        first = _next
        _next += count
    return first
