"""Pinned memory of the host, which copies can use while a program runs on: allocated by the runtime, kept for reuse."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

from .runtime import PROCESS, THREAD, bind
from .stream import Event, Stream

ROUND = 4096


class Pinned:
    """The cache of pinned blocks of a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free: dict[int, list[int]] = {}
        self.live: dict[int, int] = {}  # address -> size
        self.returned: deque[tuple[int, int]] = deque()
        self.waiting: list[tuple[int, int, list[Event]]] = []
        self.uses: dict[int, list[Event]] = {}  # running copies, by the block's address
        self.allocated = self.peak = self.allocations = self.frees = self.segments = 0

    def take(self, nbytes: int) -> np.ndarray:
        """Bytes of pinned memory as an array, released with the last view of it."""
        size = max(-(-nbytes // ROUND) * ROUND, ROUND)
        with self.lock:
            self._drain()
            known = self.free.get(size)
            address = known.pop() if known else None
            if address is None:
                place = ctypes.c_void_p()
                bind(THREAD.current).call("aclrtMallocHost", ctypes.byref(place), size)
                address = place.value or 0
                self.segments += 1
            self.live[address] = size
            self.allocated += size
            self.allocations += 1
            self.peak = max(self.peak, self.allocated)
        raw = (ctypes.c_uint8 * nbytes).from_address(address)
        weakref.finalize(raw, self.returned.append, (address, size)).atexit = False
        return np.frombuffer(raw, np.uint8, nbytes)

    def _drain(self) -> None:
        while self.returned:
            address, size = self.returned.popleft()
            self.live.pop(address, None)
            self.allocated -= size
            self.frees += 1
            self.waiting.append((address, size, self.uses.pop(address, [])))
        still = []
        for address, size, events in self.waiting:
            if all(event.query() for event in events):
                self.free.setdefault(size, []).append(address)
            else:
                still.append((address, size, events))
        self.waiting = still

    def holds(self, array: np.ndarray) -> int | None:
        """The address of the pinned block that an array lies in, or None."""
        address = array.__array_interface__["data"][0]
        for start, size in list(self.live.items()):
            if start <= address < start + size:
                return start
        return None

    def used(self, block: int, stream: Stream) -> None:
        """State that a queued copy uses a block, which is not allocated again before the copy is done."""
        event = stream.record_event()
        with self.lock:
            before = [one for one in self.uses.get(block, ()) if not one.query()]
            self.uses[block] = [*before, event]

    def empty(self) -> None:
        """Return free blocks to the runtime."""
        with self.lock:
            self._drain()
            library = bind(THREAD.current)
            for blocks in self.free.values():
                for address in blocks:
                    library.call("aclrtFreeHost", address)
                    self.segments -= 1
            self.free.clear()

    def statistics(self) -> dict[str, Any]:
        """Counts of the cache."""
        with self.lock:
            self._drain()
            reserved = self.allocated + sum(size * len(blocks) for size, blocks in self.free.items())
            return {"allocated_bytes.current": self.allocated, "allocated_bytes.peak": self.peak,
                    "reserved_bytes.current": reserved, "allocation.allocated": self.allocations,
                    "allocation.freed": self.frees, "segment.current": self.segments}


def pinned_copy(array: np.ndarray) -> np.ndarray:
    """The contents of an array in pinned memory, row-major."""
    made = PINNED.take(array.nbytes).view(array.dtype).reshape(array.shape) if array.nbytes else array.copy()
    made[...] = array
    return made


def is_pinned_array(array: np.ndarray) -> bool:
    """Whether an array lies in pinned memory."""
    return bool(PINNED.live) and PINNED.holds(array) is not None


PINNED = Pinned()
PROCESS.at_end.append(PINNED.empty)
