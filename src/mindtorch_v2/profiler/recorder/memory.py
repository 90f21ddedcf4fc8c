"""Allocations and releases of tensor memory while a recording wants them.

An array that a new tensor owns is watched by a weak reference; NumPy frees its memory when the array dies, and that
is when the reference's callback runs, whoever caused it: a `del`, the autograd engine, the garbage collector. As in
PyTorch, memory from before the first recording is not part of any, while memory that one recording saw allocated and
another sees released is part of both. So there is one log for the process, which rests between recordings.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np

from ..._dispatch.native import NATIVE
from ..._dispatch.observer import HOOK

clock = HOOK["clock"]
MEMORY_FIELDS = 4  # time, thread, bytes, address


class Block(weakref.ref):  # type: ignore[type-arg]
    """A watched array: knows its size when the array itself is gone."""

    __slots__ = ("address", "identity", "size_bytes")
    address: int  # of the memory
    identity: int  # of the array
    size_bytes: int


class MemoryLog:
    """Appends `(time, thread, bytes, address)` for every allocation, with negative bytes for releases."""

    def __init__(self) -> None:
        self.changes: list[int] = []
        self.live: dict[int, Block] = {}
        self.live_bytes = self.peak_bytes = 0  # of all that is watched: now, and the most since it was reset
        self.resting = False
        self.reset_sums()

    def allocated(self, array: Any) -> None:
        """Note that a new tensor owns this array (or a view of a fresh one)."""
        if type(array) is not np.ndarray:
            return
        while array.base is not None:
            if type(array.base) is not np.ndarray:
                return
            array = array.base
        size = array.nbytes
        identity = id(array)
        if not size or identity in self.live:
            return
        block = Block(array, self.released)
        block.identity = identity
        block.size_bytes = size
        block.address = array.__array_interface__["data"][0]
        self.live[identity] = block
        self._note(size, block.address)

    def released(self, block: Block) -> None:
        """Called when a watched array dies."""
        if self.live.pop(block.identity, None) is not None:
            self._note(-block.size_bytes, block.address)

    def _note(self, size_bytes: int, address: int) -> None:
        self.live_bytes += size_bytes
        if size_bytes > 0:
            self.allocated_bytes += size_bytes
            self.allocations += 1
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        else:
            self.freed_bytes -= size_bytes
            self.releases += 1
        if not self.resting:
            self.changes.extend((clock(), get_ident(), size_bytes, address))

    def __len__(self) -> int:
        return len(self.changes) // MEMORY_FIELDS

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """Time, thread, bytes and address of the changes from this one on, as int64 arrays."""
        return tuple(np.array(self.changes[begin * MEMORY_FIELDS:], np.int64).reshape(-1, MEMORY_FIELDS).T)

    def rest(self) -> None:
        """Forget what was noted and note nothing, but keep watching."""
        self.resting, self.changes = True, []

    def wake(self) -> None:
        """Note again."""
        self.resting = False

    def reset_peak(self) -> None:
        """Let the peak be what is alive now."""
        self.peak_bytes = self.live_bytes

    def reset_sums(self) -> None:
        """Count from zero what is allocated and freed."""
        self.allocated_bytes = self.freed_bytes = self.allocations = self.releases = 0


# The twin in C, where it is built, watches and notes the same.
new_log: Callable[[], Any] = MemoryLog if NATIVE is None else NATIVE.MemoryLog
