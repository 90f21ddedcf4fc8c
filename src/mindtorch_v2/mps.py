"""`torch.mps`: Apple's GPU, which this runtime does not use."""

from __future__ import annotations

from typing import Any

from ._absent import refusing

REASON = "torch.mps.{0}: this runtime has no MPS device; it runs on the CPU"
_REFUSED = frozenset({
    "Event", "compile_shader", "current_allocated_memory", "driver_allocated_memory", "empty_cache", "event",
    "get_rng_state", "load_metallib", "manual_seed", "profiler", "recommended_max_memory", "seed",
    "set_per_process_memory_fraction", "set_rng_state", "synchronize",
})


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def __getattr__(name: str) -> Any:
    if name not in _REFUSED:
        raise AttributeError(f"module 'torch.mps' has no attribute '{name}'")
    found = globals()[name] = refusing(name, RuntimeError, REASON)
    return found
