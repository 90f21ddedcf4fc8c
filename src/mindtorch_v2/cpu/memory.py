"""How much memory tensors have on the CPU, from recordings that watch it.

PyTorch counts memory on devices with an allocator of their own and has no such figures for the CPU. Here they come with
`profile_memory=True`: memory is watched while such a recording runs, and what was seen then is known until it is freed.
Without a recording nothing is counted, so that nothing is paid.
"""

from __future__ import annotations

from typing import Any

from .._device import DeviceLike
from .._dispatch.observer import MEMORY_LOGS


def _log() -> Any:
    if not MEMORY_LOGS:
        raise RuntimeError("torch.cpu has no memory statistics yet: memory is counted while a recording with "
                           "profile_memory=True runs, and there was none")
    return MEMORY_LOGS[0]


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors have now, of what recordings have seen allocated.

    >>> import mindtorch_v2 as torch
    >>> with torch.profiler.profile(profile_memory=True):
    ...     before = torch.cpu.memory_allocated()
    ...     x = torch.ones(256)
    ...     print(torch.cpu.memory_allocated() - before)
    1024
    """
    return int(_log().live_bytes)


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most that `memory_allocated()` has been, since the begin or since `reset_peak_memory_stats()`.

    >>> import mindtorch_v2 as torch
    >>> with torch.profiler.profile(profile_memory=True):
    ...     torch.cpu.reset_peak_memory_stats()
    ...     before = torch.cpu.memory_allocated()
    ...     y = (torch.ones(256) + 1).sum()
    >>> torch.cpu.max_memory_allocated() - before
    2052
    """
    return int(_log().peak_bytes)


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """All figures, under the names that PyTorch has for those of a device."""
    log = _log()
    return {
        "allocated_bytes.all.current": log.live_bytes, "allocated_bytes.all.peak": log.peak_bytes,
        "allocated_bytes.all.allocated": log.allocated_bytes, "allocated_bytes.all.freed": log.freed_bytes,
        "allocation.all.allocated": log.allocations, "allocation.all.freed": log.releases,
    }


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peak be what is allocated now."""
    _log().reset_peak()


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Count what is allocated and freed from zero."""
    _log().reset_sums()
