"""Locks across a fork: a child has the locks of its parent, but not the threads that would release them."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_OWNERS: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def held_across_forks(lock: Any) -> Any:
    """The lock, which a fork waits for: what it guards is then whole in the child, and the lock is free there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_child=lock.release, after_in_parent=lock.release)
    return lock


def renewed_in_children(owner: Any, name: str) -> None:
    """Give `owner.name`, a lock that guards nothing which could be half done, a new lock in each forked child."""
    _OWNERS[owner] = name


def _renew() -> None:
    for owner, name in list(_OWNERS.items()):
        setattr(owner, name, threading.Lock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
