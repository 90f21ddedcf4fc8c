"""`torch.cuda` as in a build of PyTorch without CUDA: programs can ask whether it is there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .._absent import AbsentDevice, AbsentStream, refusing, refusing_class
from .._errors import OutOfMemoryError
from .._tensor import Tensor
from . import amp, memory, profiler, random
from .memory import (
    NOT_COMPILED,
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
)
from .random import get_rng_state_all, manual_seed, manual_seed_all, seed, seed_all, set_rng_state_all

_initialized = False
default_generators: tuple[Any, ...] = ()


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def get_arch_list() -> list[str]:
    """Nothing was compiled for any architecture."""
    return []


class device(AbsentDevice):
    """The context of a device: can be made, not entered, unless it stands for no device."""

    reason = NOT_COMPILED


class device_of(device):
    """The context of a tensor's device, which is never one of these: it does nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(None)


class StreamContext(AbsentStream):
    """The context of a stream; without one it does nothing."""

    reason = NOT_COMPILED


def stream(stream: Any) -> StreamContext:
    """The context of a stream."""
    return StreamContext(stream)


_REFUSED = frozenset({
    "can_device_access_peer", "cudart", "current_blas_handle", "current_device", "current_stream", "default_stream",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_sync_debug_mode",
    "graph", "init", "initial_seed", "ipc_collect", "is_current_stream_capturing", "make_graphed_callables",
    "mem_get_info", "memory_snapshot", "memory_summary", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_stream", "set_sync_debug_mode", "synchronize",
    "utilization",
})
_REFUSED_CLASSES = {"Event": "Tried to instantiate dummy base class Event",
                    "Stream": "torch.cuda.Stream requires CUDA support",
                    "CUDAGraph": "Tried to instantiate dummy base class _CUDAGraph"}
_BELOW = frozenset({"jiterator", "streams"})  # made of a table of names, see `_outside`
_TENSOR_KINDS = frozenset({"Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"})


def __getattr__(name: str) -> Any:
    found: Callable[..., Any] | type
    if name in _REFUSED:
        found = refusing(name, AssertionError, NOT_COMPILED)
    elif name in _REFUSED_CLASSES:
        found = refusing_class(name, RuntimeError, _REFUSED_CLASSES[name])
    elif name.endswith("Tensor") and name.removesuffix("Tensor") in _TENSOR_KINDS:
        found = refusing_class(name, TypeError, f"type torch.cuda.{name} not available. {NOT_COMPILED}.")
    elif name in _BELOW:
        return importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module 'torch.cuda' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_REFUSED, *_REFUSED_CLASSES})


__all__ = [
    "OutOfMemoryError",
    "StreamContext",
    "amp",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_rng_state_all",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "profiler",
    "random",
    "seed",
    "seed_all",
    "set_rng_state_all",
    "stream",
]
