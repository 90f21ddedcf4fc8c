"""Memory of NPUs: what is allocated, what is kept for reuse, and giving it back. Before the runtime starts it is 0."""

from __future__ import annotations

from typing import Any

from .._backends.npu import runtime
from .._backends.npu.host import PINNED
from .._backends.npu.memory import Allocator, allocator, shown
from .._backends.npu.statistics import flattened
from .._backends.npu.stream import Stream, current_stream, index_of
from .._device import DeviceLike


def _allocator(device: DeviceLike) -> Allocator | None:
    """A device's allocator with its counts up to date; None before the runtime has started."""
    index = index_of(device)
    if not runtime.PROCESS.initialized:
        return None
    runtime.bind(index)
    found = allocator(index)
    found.settle()
    return found


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """All counts of a device's allocator."""
    found = _allocator(device)
    return {} if found is None else found.statistics.nested()


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """All counts of a device's allocator, with dots in their names."""
    return flattened(memory_stats_as_nested_dict(device))


def _count(device: DeviceLike, group: str, metric: str) -> int:
    found = _allocator(device)
    return 0 if found is None else found.statistics.nested()[group]["all"][metric]


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes of blocks that tensors have."""
    return _count(device, "allocated_bytes", "current")


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that tensors had."""
    return _count(device, "allocated_bytes", "peak")


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes that the allocator has from the device."""
    return _count(device, "reserved_bytes", "current")


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The most bytes that the allocator had."""
    return _count(device, "reserved_bytes", "peak")


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let peaks begin again at what there is now."""
    found = _allocator(device)
    if found is not None:
        found.statistics.reset_peaks()


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Forget how much came and went."""
    found = _allocator(device)
    if found is not None:
        found.statistics.reset_accumulated()


def empty_cache() -> None:
    """Give what is cached and unused back to the devices."""
    if runtime.PROCESS.initialized:
        for index in list(runtime.PROCESS.used):
            allocator(index).empty_cache()


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and total memory of a device, whoever uses it."""
    index = index_of(device)
    runtime.bind(index)
    return allocator(index).capacity()


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Let the allocator take no more than a part of a device's memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = index_of(device)
    runtime.bind(index)
    allocator(index).fraction = fraction


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """The part of a device's memory that the allocator may take."""
    return allocator(index_of(device)).fraction


_RAW: dict[int, Any] = {}


def caching_allocator_alloc(size: int, device: DeviceLike = None, stream: Any = None) -> int:
    """Memory from the allocator for code outside of this runtime, by its address."""
    index = index_of(device)
    runtime.bind(index)
    on = current_stream(index).npu_stream if stream is None else (
        stream.npu_stream if isinstance(stream, Stream) else int(stream))
    memory = allocator(index).take(size, on)
    _RAW[memory.pointer] = memory
    return memory.pointer


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give such memory back."""
    if _RAW.pop(mem_ptr, None) is None:
        raise ValueError(f"{mem_ptr:#x} is no address that caching_allocator_alloc has returned")


def get_allocator_backend() -> str:
    """The allocator of this runtime."""
    return "native"


def memory_snapshot() -> list[dict[str, Any]]:
    """Segments and blocks of all devices."""
    if not runtime.PROCESS.initialized:
        return []
    return [segment for index in runtime.PROCESS.used for segment in allocator(index).snapshot()]


def host_memory_stats() -> dict[str, Any]:
    """Counts of pinned memory."""
    return PINNED.statistics() if runtime.PROCESS.initialized else {}


def host_empty_cache() -> None:
    """Give pinned memory that is not used back."""
    if runtime.PROCESS.initialized:
        PINNED.empty()


ROWS = (("Allocated memory", "allocated_bytes"), ("Active memory", "active_bytes"),
        ("Requested memory", "requested_bytes"), ("NPU reserved memory", "reserved_bytes"),
        ("Non-releasable memory", "inactive_split_bytes"), ("Allocations", "allocation"), ("Active allocs", "active"),
        ("NPU reserved segments", "segment"), ("Non-releasable allocs", "inactive_split"))


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """The counts as a table."""
    index = index_of(device)
    counts = memory_stats(index)
    if not counts:
        return "no NPU memory has been used"
    width = 93
    lines = ["=" * width, f"NPU memory summary, device {index}".center(width), "-" * width,
             f" NPU OOMs: {counts['num_ooms']:<20} retries: {counts['num_alloc_retries']:<20}".ljust(width),
             "=" * width,
             f"{'Metric':<25}|{'Cur Usage':>16}|{'Peak Usage':>16}|{'Tot Alloc':>16}|{'Tot Freed':>16}", "-" * width]
    for title, group in ROWS:
        pools = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
        for pool in pools:
            name = f" {title}" if pool == "all" else f"   from {pool.replace('_', ' ')}"
            values = [counts[f"{group}.{pool}.{metric}"] for metric in ("current", "peak", "allocated", "freed")]
            text = [shown(value) if group.endswith("bytes") else str(value) for value in values]
            lines.append(f"{name:<25}|" + "|".join(f"{value:>16}" for value in text))
        lines.append("-" * width)
    return "\n".join(lines) + "\n"


