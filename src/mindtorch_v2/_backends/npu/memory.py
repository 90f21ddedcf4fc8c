"""Device memory: a caching allocator per device.

Memory comes from the runtime in segments, which are cut into blocks; a released block is kept for the next request on
its stream. Sizes, segments and statistics follow torch_npu. If another stream has used a block's memory
(`record_stream`), the block is allocated again only when that stream has passed the point of its release.

Blocks are released from `__del__`, which Python may run at any moment, even inside this module. So a release only puts
the block on a queue, and the next request for memory or statistics takes it from there.
"""

from __future__ import annotations

import bisect
import ctypes
import threading
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..._device import device
from ..._errors import OutOfMemoryError
from ..array import Memory
from .errors import NO_MEMORY, AclError
from .native import LAUNCH
from .runtime import PROCESS, bind, wait
from .statistics import Statistics

ROUND = 512
PAD = 32  # kernels may touch this much beyond the end
MIB = 1 << 20
SMALL_LIMIT = MIB  # requests up to this come from the small pool
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB  # for requests below LARGE_LIMIT
LARGE_LIMIT = 10 * MIB
SEGMENT_ROUND = 2 * MIB
HUGE_FIRST = 0
HBM = 1


class PlainSegment:
    """The attributes of a segment; the launcher has them in C."""

    __slots__ = ("address", "first", "pool", "size", "stream", "used")


class PlainBlock:
    """The attributes of a block; the launcher has them in C."""

    __slots__ = ("address", "after", "before", "free", "requested", "segment", "size", "streams")


if TYPE_CHECKING or LAUNCH is None:
    SegmentBase = PlainSegment
    BlockBase = PlainBlock
else:
    SegmentBase = LAUNCH.Segment
    BlockBase = LAUNCH.Block


class Segment(SegmentBase):
    """A stretch of memory from the runtime, in consecutive blocks."""

    __slots__ = ()

    def __init__(self, address: int, size: int, pool: int, stream: int) -> None:
        self.address, self.size, self.pool, self.stream = address, size, pool, stream
        self.used = 0  # blocks that are allocated or wait for a stream
        self.first: Block = Block(self, address, size)


class Block(BlockBase):
    """A part of a segment."""

    __slots__ = ()

    def __init__(self, segment: Segment, address: int, size: int) -> None:
        self.segment, self.address, self.size = segment, address, size
        self.before: Block | None = None
        self.after: Block | None = None
        self.free = True
        self.requested = 0
        self.streams: set[Any] | None = None  # other streams that use it


class FreeList:
    """Free blocks of a pool and stream: by size, and just released ones, which are not merged yet."""

    __slots__ = ("blocks", "keys", "recent")

    def __init__(self) -> None:
        self.keys: list[tuple[int, int]] = []
        self.blocks: list[Block] = []
        self.recent: dict[int, list[Block]] = {}

    def add(self, block: Block) -> None:
        """Put a block in its place."""
        place = bisect.bisect(self.keys, key := (block.size, block.address))
        self.keys.insert(place, key)
        self.blocks.insert(place, block)

    def remove(self, block: Block) -> None:
        """Take a block out."""
        place = bisect.bisect_left(self.keys, (block.size, block.address))
        del self.keys[place], self.blocks[place]

    def best(self, size: int) -> Block | None:
        """The smallest block that is large enough, taken out."""
        place = bisect.bisect_left(self.keys, (size, 0))
        if place == len(self.keys):
            return None
        del self.keys[place]
        return self.blocks.pop(place)


def rounded(nbytes: int) -> int:
    """The size of the block for a request.

    >>> rounded(0), rounded(4), rounded(480), rounded(512)
    (512, 512, 512, 1024)
    """
    return (nbytes + PAD + ROUND - 1) // ROUND * ROUND


class PlainMemory(Memory):
    """A block of a tensor, released with the last array on it."""

    __slots__ = ("_allocator", "_block")

    def __init__(self, where: device, block: Block, nbytes: int, allocator: Allocator) -> None:
        self.device = where
        self.pointer = block.address
        self.nbytes = nbytes
        self._block = block
        self._allocator = allocator

    def __del__(self) -> None:
        self._allocator.give_back(self._block)


NpuMemory: Any = PlainMemory if LAUNCH is None else LAUNCH.Memory


class PlainDepot:
    """What the launcher knows about an allocator; nothing here, if there is no launcher."""

    busy = 0

    def take(self, nbytes: int, stream: int) -> Any:
        """Memory for a tensor whose work is on a stream."""
        return self.take_slowly(nbytes, stream)

    def take_slowly(self, nbytes: int, stream: int) -> Any:
        """The same, by all means."""
        raise NotImplementedError

    def know(self, stream: int, pool: int, recent: dict[int, list[Block]]) -> None:
        """The most recently released blocks by size, of a stream and pool."""


class Inside:
    """The lock of an allocator; while it is held, the launcher does not use the allocator."""

    def __init__(self, depot: Any) -> None:
        self.depot, self.lock = depot, threading.RLock()

    def __enter__(self) -> None:
        self.lock.acquire()
        self.depot.busy += 1

    def __exit__(self, *exc: object) -> None:
        self.depot.busy -= 1
        self.lock.release()


if TYPE_CHECKING or LAUNCH is None:
    DepotBase = PlainDepot
else:
    DepotBase = LAUNCH.Depot


class Allocator(DepotBase):
    """The memory of one device. The launcher allocates and releases available blocks; `take_slowly` does everything."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.where = device("npu", index)
        self.lock = Inside(self)
        self.statistics = Statistics()
        self.lists: dict[tuple[int, int], FreeList] = {}  # by pool and stream
        self.segments: dict[int, Segment] = {}
        self.returned: deque[Block] = deque()
        self.waiting: deque[tuple[Block, list[Any]]] = deque()  # with the events that other streams must reach
        self.fraction = 1.0
        # While a profiler watches memory: called with address, bytes (negative for a release), allocated, reserved.
        self.watch: Any = None

    # -- taking --------------------------------------------------------------------------------------------------------

    def take_slowly(self, nbytes: int, stream: int) -> Any:
        """Memory for a tensor whose work is on a stream."""
        size = (nbytes + PAD + ROUND - 1) // ROUND * ROUND
        pool = 0 if size <= SMALL_LIMIT else 1
        with self.lock:
            if self.returned:
                self._drain()
            free = self.lists.get((pool, stream))
            recent = free.recent.get(size) if free is not None else None
            block = recent.pop() if recent else self._search(pool, stream, size)
            block.free = False
            block.requested = nbytes
            block.segment.used += 1
            self.statistics.take(pool, block.size, nbytes)
            made = NpuMemory(self.where, block, nbytes, self)
        if self.watch is not None:
            self._tell(block.address, block.size)
        return made

    def _search(self, pool: int, stream: int, size: int) -> Block:
        """A block of a size from the free ones, or from a new segment."""
        free = self.lists.get((pool, stream))
        if free is None:
            free = self.lists[pool, stream] = FreeList()
            self.know(stream, pool, free.recent)
        block = free.best(size)
        if block is None and free.recent:
            self._merge_recent(free)
            block = free.best(size)
        if block is None and self.waiting:
            self._poll()
            block = free.best(size)
        if block is None:
            block = self._grow(pool, stream, size)
        return self._split(free, block, size)

    def _split(self, free: FreeList, block: Block, size: int) -> Block:
        rest = block.size - size
        segment = block.segment
        was_split = block.size != segment.size
        if rest >= ROUND if segment.pool == 0 else rest > MIB:
            other = Block(segment, block.address + size, rest)
            block.size = size
            other.before, other.after = block, block.after
            if block.after is not None:
                block.after.before = other
            block.after = other
            free.add(other)
            if was_split:
                self.statistics.shrink(segment.pool, inactive_split_bytes=size)
            else:
                self.statistics.grow(segment.pool, inactive_split=1, inactive_split_bytes=rest)
        elif was_split:
            self.statistics.shrink(segment.pool, inactive_split=1, inactive_split_bytes=block.size)
        return block

    def _grow(self, pool: int, stream: int, size: int) -> Block:
        """A new segment; if the device has no memory left, after returning cached memory."""
        wanted = SMALL_SEGMENT if pool == 0 else (LARGE_SEGMENT if size < LARGE_LIMIT
                                                  else -(-size // SEGMENT_ROUND) * SEGMENT_ROUND)
        address = self._malloc(wanted)
        if address is None:
            self.statistics.num_alloc_retries += 1
            self._release_cached()
            address = self._malloc(wanted)
        if address is None:
            self.statistics.num_ooms += 1
            raise self._out_of_memory(size)
        segment = Segment(address, wanted, pool, stream)
        self.segments[address] = segment
        self.statistics.num_device_alloc += 1
        self.statistics.grow(pool, segment=1, reserved_bytes=wanted)
        return segment.first

    def _malloc(self, size: int) -> int | None:
        if self.fraction < 1.0:
            limit = int(self.capacity()[1] * self.fraction)
            if self.statistics.all.reserved_bytes.current + size > limit:
                return None
        library = bind(self.index)
        place = ctypes.c_void_p()
        try:
            library.call("aclrtMallocAlign32", ctypes.byref(place), size, HUGE_FIRST)
        except AclError as error:
            if error.code in NO_MEMORY:
                return None
            raise
        return place.value

    def _out_of_memory(self, size: int) -> OutOfMemoryError:
        free, total = self.capacity()
        allocated, reserved = self.statistics.allocated_bytes, self.statistics.all.reserved_bytes.current
        if OUT_OF_MEMORY[0] is not None:
            OUT_OF_MEMORY[0](size, self.index, allocated, reserved)
        return OutOfMemoryError(
            f"NPU out of memory. Tried to allocate {shown(size)}. NPU {self.index} has a total capacity of "
            f"{shown(total)} of which {shown(free)} is free. {shown(allocated)} is allocated by tensors, "
            f"{shown(reserved - allocated)} is reserved but unallocated."
            + (f" The process may use {self.fraction:.2%} of the device." if self.fraction < 1 else ""))

    def capacity(self) -> tuple[int, int]:
        """Free and total memory of the device."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        bind(self.index).call("aclrtGetMemInfo", HBM, ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    # -- giving back ---------------------------------------------------------------------------------------------------

    def give_back(self, block: Block) -> None:
        """A tensor's memory is no longer needed; runs in `__del__`."""
        self.returned.append(block)
        if self.watch is not None:
            self._tell(block.address, -block.size)

    def _drain(self) -> None:
        """Take the released blocks from the queue."""
        returned, statistics = self.returned, self.statistics
        while returned:
            block = returned.popleft()
            pool = block.segment.pool
            statistics.give_back(pool, block.size, block.requested)
            if block.streams:
                events = [stream.record_event() for stream in block.streams]
                block.streams = None
                statistics.hold(pool, block.size, block.requested)
                self.waiting.append((block, events))
            else:
                self._set_free(block)

    def _set_free(self, block: Block) -> None:
        """Keep a block for the next request of its size; it counts as a free part when it is merged."""
        segment = block.segment
        block.free = True
        segment.used -= 1
        free = self.lists[segment.pool, segment.stream]
        recent = free.recent.get(block.size)
        if recent is None:
            free.recent[block.size] = [block]
        else:
            recent.append(block)

    def _poll(self, wait: bool = False) -> None:
        """Release the blocks whose streams have passed."""
        for _ in range(len(self.waiting)):
            block, events = self.waiting.popleft()
            if wait:
                for event in events:
                    event.synchronize()
            if all(event.query() for event in events):
                self.statistics.hold(block.segment.pool, block.size, block.requested, -1)
                self._set_free(block)
            else:
                self.waiting.append((block, events))

    def _merge_recent(self, free: FreeList) -> None:
        """Put just released blocks among the others, merged with free neighbours."""
        pending = {id(block): block for blocks in free.recent.values() for block in blocks}
        free.recent.clear()
        for block in pending.values():
            if block.size != block.segment.size:
                self.statistics.grow(block.segment.pool, inactive_split=1, inactive_split_bytes=block.size)
        while pending:
            _, block = pending.popitem()
            segment = block.segment
            part = block.size != segment.size
            while block.before is not None and block.before.free:
                other = block.before
                if pending.pop(id(other), None) is None:
                    free.remove(other)
                self._join(other, block)
                block = other
            while block.after is not None and block.after.free:
                other = block.after
                if pending.pop(id(other), None) is None:
                    free.remove(other)
                self._join(block, other)
            free.add(block)
            if part and block.size == segment.size:
                self.statistics.shrink(segment.pool, inactive_split=1, inactive_split_bytes=block.size)

    def _join(self, first: Block, second: Block) -> None:
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        self.statistics.shrink(first.segment.pool, inactive_split=1)

    def settle(self) -> None:
        """Process the queue, so that statistics are current."""
        with self.lock:
            self._drain()
            self._poll()
            for free in self.lists.values():
                if free.recent:
                    self._merge_recent(free)

    def empty_cache(self) -> None:
        """Return unused segments to the device."""
        with self.lock:
            self._drain()
            self._release_cached()

    def _release_cached(self) -> None:
        library = bind(self.index)
        wait(self.index, "aclrtSynchronizeDevice")
        self.statistics.num_sync_all_streams += 1
        self._poll(wait=True)
        for free in self.lists.values():
            self._merge_recent(free)
            for block in [block for block in free.blocks if block.size == block.segment.size]:
                free.remove(block)
                segment = block.segment
                library.call("aclrtFree", segment.address)
                del self.segments[segment.address]
                self.statistics.num_device_free += 1
                self.statistics.shrink(segment.pool, segment=1, reserved_bytes=segment.size)

    def record_stream(self, memory: Any, stream: Any) -> None:
        """A stream uses a block that was allocated on another: it must pass before the block is used again."""
        block = memory._block
        if stream.npu_stream == block.segment.stream:
            return
        with self.lock:
            if block.streams is None:
                block.streams = set()
            block.streams.add(stream)

    def snapshot(self) -> list[dict[str, Any]]:
        """Segments and their blocks."""
        self.settle()
        with self.lock:
            return [self._described(segment) for segment in self.segments.values()]

    def _described(self, segment: Segment) -> dict[str, Any]:
        blocks = [{"address": block.address, "size": block.size, "requested_size": block.requested,
                   "state": "inactive" if block.free else "active_allocated"} for block in blocks_of(segment)]
        used = [block for block in blocks if block["state"] != "inactive"]
        return {"device": self.index, "address": segment.address, "total_size": segment.size,
                "allocated_size": sum(block["size"] for block in used),
                "active_size": sum(block["size"] for block in used),
                "stream": segment.stream, "segment_type": ("small", "large")[segment.pool], "blocks": blocks}

    def _tell(self, address: int, size: int) -> None:
        # Blocks in the queue are already free for a program.
        allocated = self.statistics.allocated_bytes - sum(block.size for block in list(self.returned))
        watch = self.watch
        if watch is not None:
            watch(address, size, allocated, self.statistics.all.reserved_bytes.current, self.index)


# Called with size, device, allocated and reserved bytes when an allocation fails.
OUT_OF_MEMORY: list[Any] = [None]


def blocks_of(segment: Segment) -> Iterator[Block]:
    """The blocks of a segment, from its start."""
    block: Block | None = segment.first
    while block is not None:
        yield block
        block = block.after


def shown(nbytes: int) -> str:
    """A size in a unit that suits it.

    >>> shown(512), shown(3 << 20)
    ('512 bytes', '3.00 MiB')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} bytes"


ALLOCATORS: dict[int, Allocator] = {}
_LOCK = threading.Lock()


def allocator(index: int) -> Allocator:
    """The allocator of a device."""
    found = ALLOCATORS.get(index)
    if found is None:
        with _LOCK:
            found = ALLOCATORS.setdefault(index, Allocator(index))
    return found


def _release_all() -> None:
    """At the end of the process, return the memory; the runtime's reset releases blocks that tensors still have."""
    for each in ALLOCATORS.values():
        each.empty_cache()


PROCESS.at_end.append(_release_all)

