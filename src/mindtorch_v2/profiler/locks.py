"""Locks that an interrupt cannot leave taken, and a way to read what other threads change, without a lock."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, TypeVar

RLock = Any  # what threading.RLock() makes
Key = TypeVar("Key")
Value = TypeVar("Value")
_GONE: Any = object()


def is_mine(lock: RLock) -> bool:
    """Whether this thread holds a lock."""
    return bool(lock._is_owned())


def let_go(lock: RLock) -> None:
    """Release a lock as often as this thread has taken it.

    For the outermost error handler: if Ctrl-C interrupts a `with lock:` between the end of its block and the release,
    the lock stays taken, and no Python code can rule that out.
    """
    while is_mine(lock):
        lock.release()


def new_lock() -> RLock:
    """A lock that a thread may take again."""
    return threading.RLock()


def items_now(shared: Mapping[Key, Value]) -> list[tuple[Key, Value]]:
    """The items of a dictionary that other threads change meanwhile.

    `list(shared.items())` makes tuples. Before Python 3.12 this can start a garbage collection, whose callbacks and
    finalizers let other threads run in the middle of it.
    """
    return [(key, value) for key in list(shared) if (value := shared.get(key, _GONE)) is not _GONE]
