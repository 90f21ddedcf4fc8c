"""Counts of a caching allocator, under the names of `torch.npu.memory_stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .native import LAUNCH

POOLS = ("small_pool", "large_pool")
GROUPS = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
          "inactive_split_bytes", "requested_bytes")
RARE = ("segment", "reserved_bytes", "inactive_split", "inactive_split_bytes")
METRICS = ("current", "peak", "allocated", "freed")
COUNTERS = ("num_alloc_retries", "num_ooms", "num_oom_rejections", "num_sync_all_streams", "num_device_alloc",
            "num_device_free")


class Counter:
    """One quantity: the current value, the peak, and all that was added and removed."""

    __slots__ = ("allocated", "current", "freed", "peak")

    def __init__(self) -> None:
        self.current = self.peak = self.allocated = self.freed = 0

    def grow(self, amount: int) -> None:
        """More of it."""
        self.allocated += amount
        self.current += amount
        if self.current > self.peak:
            self.peak = self.current

    def shrink(self, amount: int) -> None:
        """Less of it."""
        self.freed += amount
        self.current -= amount

    def nested(self) -> dict[str, int]:
        """As a dictionary of metrics."""
        return {metric: getattr(self, metric) for metric in METRICS}


class Blocks:
    """Blocks of one pool that tensors have. Plain numbers, because every new tensor changes them.

    The launcher has them in C, with the same names.
    """

    __slots__ = ("bytes_given", "bytes_peak", "bytes_taken", "given", "peak", "requested_given", "requested_peak",
                 "requested_taken", "taken")

    def __init__(self) -> None:
        self.taken = self.given = self.peak = 0
        self.bytes_taken = self.bytes_given = self.bytes_peak = 0
        self.requested_taken = self.requested_given = self.requested_peak = 0


class Kept:
    """Quantities of one pool, or of both, that change rarely."""

    __slots__ = RARE
    segment: Counter
    reserved_bytes: Counter
    inactive_split: Counter
    inactive_split_bytes: Counter

    def __init__(self) -> None:
        for group in RARE:
            setattr(self, group, Counter())


class PlainTally:
    """Counts of both pools, and their peaks."""

    def __init__(self) -> None:
        self.blocks = (Blocks(), Blocks())
        self.peak = self.bytes_peak = self.requested_peak = 0  # over both pools
        self.waiting = 0  # blocks that wait for a stream


if TYPE_CHECKING or LAUNCH is None:
    TallyBase = PlainTally
else:
    TallyBase = LAUNCH.Tally


class Statistics(TallyBase):
    """All counts of a device's allocator. The sums over both pools have peaks of their own.

    Blocks that tensors have released and that wait for a stream (`held`) count as active, not as allocated.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept = (Kept(), Kept())
        self.all = Kept()
        self.held = [[0, 0, 0], [0, 0, 0]]  # blocks, bytes and requested bytes that wait, by pool
        self.active_peaks = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]  # while some wait: by pool, and over both
        self.oversize_allocations = Counter()
        self.oversize_segments = Counter()
        self.num_alloc_retries = self.num_ooms = self.num_oom_rejections = 0
        self.num_sync_all_streams = self.num_device_alloc = self.num_device_free = 0

    def take(self, pool: int, size: int, requested: int) -> None:
        """A block was allocated."""
        blocks = self.blocks[pool]
        blocks.taken += 1
        blocks.bytes_taken += size
        blocks.requested_taken += requested
        other = self.blocks[1 - pool]
        now = blocks.taken - blocks.given
        if now > blocks.peak:
            blocks.peak = now
        now += other.taken - other.given
        if now > self.peak:
            self.peak = now
        now = blocks.bytes_taken - blocks.bytes_given
        if now > blocks.bytes_peak:
            blocks.bytes_peak = now
        now += other.bytes_taken - other.bytes_given
        if now > self.bytes_peak:
            self.bytes_peak = now
        now = blocks.requested_taken - blocks.requested_given
        if now > blocks.requested_peak:
            blocks.requested_peak = now
        now += other.requested_taken - other.requested_given
        if now > self.requested_peak:
            self.requested_peak = now
        if self.waiting:
            self._raise_active()

    def give_back(self, pool: int, size: int, requested: int) -> None:
        """A tensor released its block."""
        blocks = self.blocks[pool]
        blocks.given += 1
        blocks.bytes_given += size
        blocks.requested_given += requested

    def hold(self, pool: int, size: int, requested: int, sign: int = 1) -> None:
        """Such a block waits for a stream or, with a sign of -1, waits no more."""
        held = self.held[pool]
        self.waiting += sign
        held[0] += sign
        held[1] += sign * size
        held[2] += sign * requested
        self._raise_active()

    def _raise_active(self) -> None:
        present = [self._active(0), self._active(1)]
        present.append([a + b for a, b in zip(*present, strict=True)])
        for peaks, now in zip(self.active_peaks, present, strict=True):
            peaks[:] = [max(pair) for pair in zip(peaks, now, strict=True)]

    def _active(self, pool: int) -> list[int]:
        blocks, held = self.blocks[pool], self.held[pool]
        return [blocks.taken - blocks.given + held[0], blocks.bytes_taken - blocks.bytes_given + held[1],
                blocks.requested_taken - blocks.requested_given + held[2]]

    @property
    def allocated_bytes(self) -> int:
        """Bytes of blocks that tensors have."""
        return sum(one.bytes_taken - one.bytes_given for one in self.blocks)

    def grow(self, pool: int, **amounts: int) -> None:
        """Count more of some quantities."""
        for group, amount in amounts.items():
            getattr(self.kept[pool], group).grow(amount)
            getattr(self.all, group).grow(amount)

    def shrink(self, pool: int, **amounts: int) -> None:
        """Count less of some quantities."""
        for group, amount in amounts.items():
            getattr(self.kept[pool], group).shrink(amount)
            getattr(self.all, group).shrink(amount)

    def _rare(self) -> list[Counter]:
        each = [getattr(kept, group) for kept in (*self.kept, self.all) for group in RARE]
        return [*each, self.oversize_allocations, self.oversize_segments]

    def reset_peaks(self) -> None:
        """Reset peaks to the current values."""
        for counter in self._rare():
            counter.peak = counter.current
        for one in self.blocks:
            one.peak, one.bytes_peak = one.taken - one.given, one.bytes_taken - one.bytes_given
            one.requested_peak = one.requested_taken - one.requested_given
        self.peak, self.bytes_peak, self.requested_peak = (
            sum(getattr(one, name) for one in self.blocks) for name in ("peak", "bytes_peak", "requested_peak"))
        self.active_peaks = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
        self._raise_active()

    def reset_accumulated(self) -> None:
        """Reset the sums, and the counts of failures."""
        for counter in self._rare():
            counter.allocated = counter.freed = 0
        for one in self.blocks:
            one.taken, one.given = one.taken - one.given, 0
            one.bytes_taken, one.bytes_given = one.bytes_taken - one.bytes_given, 0
            one.requested_taken, one.requested_given = one.requested_taken - one.requested_given, 0
        self.num_alloc_retries = self.num_ooms = 0

    def nested(self) -> dict[str, Any]:
        """All counts as nested dictionaries."""
        found: dict[str, Any] = {group: {} for group in GROUPS}
        for place, name in enumerate((*POOLS, "all")):
            kept = self.all if place == 2 else self.kept[place]
            for group in RARE:
                found[group][name] = getattr(kept, group).nested()
            for group, counts in zip(("allocation", "allocated_bytes"), self._blocks(place), strict=False):
                found[group][name] = counts
            for group, counts in zip(("active", "active_bytes", "requested_bytes"), self._actives(place), strict=True):
                found[group][name] = counts
        for name in COUNTERS:
            found[name] = getattr(self, name)
        found["oversize_allocations"] = self.oversize_allocations.nested()
        found["oversize_segments"] = self.oversize_segments.nested()
        found["max_split_size"] = -1
        return found

    def _blocks(self, place: int) -> list[dict[str, int]]:
        """Counts, bytes and requested bytes of blocks that tensors have, in a pool or over both."""
        mine = self.blocks if place == 2 else (self.blocks[place],)
        peaks = (self.peak, self.bytes_peak, self.requested_peak) if place == 2 else (
            mine[0].peak, mine[0].bytes_peak, mine[0].requested_peak)
        made = []
        for prefix, peak in zip(("", "bytes_", "requested_"), peaks, strict=True):
            taken = sum(getattr(one, f"{prefix}taken") for one in mine)
            given = sum(getattr(one, f"{prefix}given") for one in mine)
            made.append({"current": taken - given, "peak": peak, "allocated": taken, "freed": given})
        return made

    def _actives(self, place: int) -> list[dict[str, int]]:
        """The same with those that wait for a stream."""
        held = [a + b for a, b in zip(*self.held, strict=True)] if place == 2 else self.held[place]
        return [{"current": one["current"] + waits, "peak": max(one["peak"], top), "allocated": one["allocated"],
                 "freed": one["freed"] - waits}
                for one, waits, top in zip(self._blocks(place), held, self.active_peaks[place], strict=True)]


def flattened(nested: dict[str, Any], prefix: str = "") -> dict[str, int]:
    """Nested counts with dots in their names.

    >>> flattened({"a": {"b": 1}, "c": 2})
    {'a.b': 1, 'c': 2}
    """
    found: dict[str, int] = {}
    for key, value in sorted(nested.items()):
        if isinstance(value, dict):
            found.update(flattened(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found
