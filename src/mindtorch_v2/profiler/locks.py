"""Locks that an interrupt cannot leave taken."""

from __future__ import annotations

import threading
from typing import Any

RLock = Any  # what threading.RLock() makes


def is_mine(lock: RLock) -> bool:
    """Whether this thread has a lock."""
    return bool(lock._is_owned())


def let_go(lock: RLock) -> None:
    """Release a lock as often as this thread has taken it.

    For the outermost handler of errors: a `with lock:` that Ctrl-C interrupts between the end of its block and the
    lock's release leaves the lock taken, and no code in Python can rule that out.
    """
    while is_mine(lock):
        lock.release()


def new_lock() -> RLock:
    """A lock that a thread may take again."""
    return threading.RLock()
