"""`torch.cuda.memory`: there is none, and asking how much is used is allowed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .._absent import refusing, refusing_class
from .._device import DeviceLike

NOT_COMPILED = "Torch not compiled with CUDA enabled"


def empty_cache() -> None:
    """Nothing: there is no memory to give back."""


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """No figures."""
    return OrderedDict()


def memory_allocated(device: DeviceLike = None) -> int:
    """0 bytes."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
memory_cached = max_memory_cached = memory_allocated

CUDAPluggableAllocator = refusing_class("CUDAPluggableAllocator", RuntimeError, NOT_COMPILED)
MemPool = refusing_class("MemPool", RuntimeError, NOT_COMPILED)
_dump_snapshot = refusing("_dump_snapshot", AssertionError, NOT_COMPILED)
_record_memory_history = refusing("_record_memory_history", AssertionError, NOT_COMPILED)
_set_allocator_settings = refusing("_set_allocator_settings", AssertionError, NOT_COMPILED)
_snapshot = refusing("_snapshot", AssertionError, NOT_COMPILED)
