"""Records allocations and releases of tensor memory.

A weak reference watches each array that a new tensor owns. NumPy frees the memory when the array dies, and then the
reference's callback runs, whatever the cause: a `del`, the autograd engine, the garbage collector. As in PyTorch, no
recording counts memory from before the first one. If one recording sees an allocation and another its release, both
count it. So there is one log for the process, which pauses between recordings.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._dispatch.native import NATIVE
from ..._dispatch.observer import HOOK, MEMORY_LOGS
from ..options import Options
from .base import Source, Stretch

if TYPE_CHECKING:
    from ..recorder.running import Running

clock = HOOK["clock"]
MEMORY_FIELDS = 4  # time, thread, bytes, address


class Block(weakref.ref):
    """A watched array: it knows its size when the array itself is gone."""

    __slots__ = ("address", "identity", "size_bytes")
    address: int  # of the memory
    identity: int  # of the array
    size_bytes: int
    # A key of its own: arrays have no hash.
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def _figure(name: str, meaning: str) -> property:
    def settled(log: MemoryLog) -> int:
        log.settle()
        return int(getattr(log, name))

    return property(settled, doc=meaning)


class MemoryLog:
    """Appends `(time, thread, bytes, address)` for every allocation, with negative bytes for releases.

    No Python code runs when an array dies, because a Ctrl-C during the callback of a weak reference is lost. The
    callback is the look-up in a dictionary that makes its missing entries from the clock; `settle` makes rows of them.
    """

    def __init__(self) -> None:
        self.changes: list[int] = []
        self.live: dict[int, Block] = {}
        self._dead: defaultdict[Block, tuple[int, int]] = defaultdict(
            zip(iter(clock, None), iter(get_ident, None), strict=False).__next__)  # time and thread, in order of death
        self._died = self._dead.__getitem__
        self._live_bytes = self._peak_bytes = 0
        self.resting = False
        self.reset_sums()

    def allocated(self, array: Any) -> None:
        """Record that a new tensor owns this array (or a view of a fresh one)."""
        if type(array) is not np.ndarray:
            return
        while array.base is not None:
            if type(array.base) is not np.ndarray:
                return
            array = array.base
        size = array.nbytes
        identity = id(array)
        if self._dead:
            self.settle()
        known = self.live.get(identity)
        if not size or (known is not None and known() is array):
            return
        block = Block(array, self._died)
        block.identity = identity
        block.size_bytes = size
        block.address = array.__array_interface__["data"][0]
        self.live[identity] = block
        self._note(size, block.address, clock(), get_ident())

    def settle(self) -> None:
        """Record what has died. Several threads may be here at once."""
        for block in list(self._dead):
            death = self._dead.pop(block, None)
            if death is not None:
                newer = self.live.pop(block.identity, None)
                if newer is not None and newer is not block:
                    self.live[block.identity] = newer
                self._note(-block.size_bytes, block.address, *death)

    def _note(self, size_bytes: int, address: int, time_ns: int, thread: int) -> None:
        self._live_bytes += size_bytes
        if size_bytes > 0:
            self._allocated_bytes += size_bytes
            self._allocations += 1
            self._peak_bytes = max(self._peak_bytes, self._live_bytes)
        else:
            self._freed_bytes -= size_bytes
            self._releases += 1
        if not self.resting:
            self.changes.extend((time_ns, thread, size_bytes, address))

    live_bytes = _figure("_live_bytes", "Bytes of all watched arrays now.")
    peak_bytes = _figure("_peak_bytes", "The maximum of live bytes since the reset.")
    allocated_bytes = _figure("_allocated_bytes", "Since the sums were reset.")
    freed_bytes = _figure("_freed_bytes", "Since the sums were reset.")
    allocations = _figure("_allocations", "Since the sums were reset.")
    releases = _figure("_releases", "Since the sums were reset.")

    def __len__(self) -> int:
        self.settle()
        return len(self.changes) // MEMORY_FIELDS

    def since(self, begin: int) -> tuple[np.ndarray, ...]:
        """Time, thread, bytes and address of the changes from this one on, as int64 arrays."""
        self.settle()
        return tuple(np.array(self.changes[begin * MEMORY_FIELDS:], np.int64).reshape(-1, MEMORY_FIELDS).T)

    def drain(self) -> tuple[np.ndarray, ...]:
        """What was recorded; the log drops it."""
        size = len(self) * MEMORY_FIELDS
        taken = self.changes[:size]
        del self.changes[:size]
        return tuple(np.array(taken, np.int64).reshape(-1, MEMORY_FIELDS).T)

    def rest(self) -> None:
        """Drop the log and record nothing, but keep watching."""
        self.settle()
        self.resting, self.changes = True, []

    def wake(self) -> None:
        """Record again."""
        self.settle()
        self.resting = False

    def reset_peak(self) -> None:
        """Set the peak to what is alive now."""
        self._peak_bytes = self.live_bytes

    def reset_sums(self) -> None:
        """Count from zero what is allocated and freed."""
        self.settle()
        self._allocated_bytes = self._freed_bytes = self._allocations = self._releases = 0


# The C twin, if it was built, watches and records the same.
new_log: Callable[[], Any] = MemoryLog if NATIVE is None else NATIVE.MemoryLog
MEMORY = new_log()
MEMORY.rest()


@dataclass(frozen=True)
class MemoryMark:
    """Where a recorder began."""

    changes: int
    failures: int
    live_bytes: int  # what was allocated, as far as known


@dataclass(frozen=True)
class MemoryPart:
    """What one recorder sees."""

    changes: tuple[np.ndarray, ...]  # time, thread, bytes, address
    live_bytes: int  # what was allocated before
    failures: list[tuple[int, int, int]]  # failed allocations: time, thread, bytes


class Memory(Source):
    """Controls the process's log."""

    name = "memory"
    tables = ("memory", "failures")
    cost = "a weak reference per array that a tensor owns, and a row of four numbers when it comes and when it goes"

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self.failures: list[tuple[int, int, int]] = []

    def wanted(self, options: Options) -> bool:
        """If memory is requested."""
        return options.memory

    def start(self) -> None:
        """Record allocations from now on, and their releases."""
        MEMORY.wake()
        MEMORY_LOGS[:] = [MEMORY]
        HOOK["ALLOCATED"], HOOK["FAILED"] = MEMORY.allocated, self.failed

    def stop(self) -> None:
        """Keep watching what was allocated, but record nothing."""
        HOOK["ALLOCATED"] = HOOK["FAILED"] = None
        MEMORY.rest()

    def failed(self, size_bytes: int) -> None:
        """Record that an allocation failed for lack of memory."""
        self.failures.append((clock(), get_ident(), size_bytes))

    def mark(self) -> MemoryMark:
        """The position in the log."""
        return MemoryMark(len(MEMORY), len(self.failures), MEMORY.live_bytes)

    def take(self, mark: MemoryMark, stretch: Stretch) -> MemoryPart:
        """What was recorded since a mark."""
        return MemoryPart(MEMORY.since(mark.changes), mark.live_bytes, self.failures[mark.failures:])
