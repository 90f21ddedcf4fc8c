"""`torch.npu`: Ascend NPUs. The device is not built into this runtime yet: it can be asked for, and is not there."""

from __future__ import annotations

from typing import Any

from ._absent import refusing, refusing_class

REASON = "torch.npu.{0}: no NPU is available (this runtime was built without the NPU device)"
_REFUSED = frozenset({
    "set_device", "current_device", "device", "device_of", "synchronize", "init", "get_device_name",
    "get_device_properties", "get_device_capability", "can_device_access_peer", "utilization", "current_stream",
    "default_stream", "set_stream", "stream", "memory_allocated", "max_memory_allocated", "memory_reserved",
    "max_memory_reserved", "memory_cached", "max_memory_cached", "memory_stats", "memory_stats_as_nested_dict",
    "memory_summary", "memory_snapshot", "reset_peak_memory_stats", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "empty_cache", "mem_get_info",
    "set_per_process_memory_fraction", "get_per_process_memory_fraction", "caching_allocator_alloc",
    "caching_allocator_delete", "get_allocator_backend", "use_mem_pool", "change_current_allocator",
    "host_memory_stats", "host_empty_cache", "initial_seed", "get_rng_state", "set_rng_state", "set_autocast_enabled",
    "set_autocast_dtype", "set_compile_mode", "set_option", "set_sync_debug_mode", "graph", "make_graphed_callables",
})
_REFUSED_CLASSES = frozenset({
    "Stream", "Event", "StreamContext", "ExternalStream", "SyncLaunchStream", "MemPool", "NPUPluggableAllocator",
    "NPUGraph", "FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "LongTensor", "IntTensor",
    "ShortTensor", "CharTensor", "ByteTensor", "BoolTensor",
})
default_generators: tuple[Any, ...] = ()


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported() -> bool:
    """False."""
    return False


def is_autocast_enabled() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: a seed for a device that never comes is forgotten."""


def manual_seed_all(seed: int) -> None:
    """Nothing, as `manual_seed`."""


def seed() -> None:
    """Nothing, as `manual_seed`."""


def seed_all() -> None:
    """Nothing, as `manual_seed`."""


def get_rng_state_all() -> list[Any]:
    """The states of no devices."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of no devices; a state for one is refused."""
    for _ in new_states:
        raise RuntimeError(REASON.format("set_rng_state_all"))


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        found: Any = refusing(name, RuntimeError, REASON.format(name))
    elif name in _REFUSED_CLASSES:
        found = refusing_class(name, RuntimeError, REASON.format(name))
    else:
        raise AttributeError(f"module 'torch.npu' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_REFUSED, *_REFUSED_CLASSES})
