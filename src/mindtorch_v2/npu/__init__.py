"""`torch.npu`: Ascend NPUs, as torch_npu has them.

`is_available()` says whether there is one, `unavailable_reason()` why not. Nothing is opened before the first question.
`MINDTORCH_NPU=sim` chooses the simulator; `docs/npu.md` tells the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._absent import refusing, refusing_class
from .._backends.npu.device import simulated
from .._backends.npu.stream import (
    Event,
    ExternalStream,
    Stream,
    current_stream,
    default_stream,
    set_stream,
)
from .._legacy import types_of
from . import amp, config, random
from .amp import (
    get_amp_supported_dtype,
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .devices import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
    unavailable_reason,
    utilization,
)
from .memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_empty_cache,
    host_memory_stats,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .precision import conv, matmul
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)


class StreamContext:
    """Queue work on a stream inside the block; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*exc)


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work is queued on a stream."""
    return StreamContext(stream)


def set_sync_debug_mode(mode: int | str) -> None:
    """0 or "default": no warning when a call waits for the device. Other modes are not supported."""
    if mode not in (0, "default"):
        raise NotImplementedError(f"set_sync_debug_mode({mode!r}): calls that wait for the device are not reported")


def get_sync_debug_mode() -> int:
    """0: no warning when a call waits for the device."""
    return 0


def set_compile_mode(jit_compile: bool = False) -> None:
    """Operators are called as the libraries have them; they are never compiled, as `jit_compile=False` asks."""
    if jit_compile:
        raise NotImplementedError("set_compile_mode(jit_compile=True): operators are not compiled by this runtime")


def set_option(option: dict[str, Any]) -> None:
    """Options of CANN's compiler, which this runtime does not use; an unknown one is refused."""
    known = {"jitCompile", "ACL_OP_COMPILER_CACHE_MODE", "ACL_OP_COMPILER_CACHE_DIR", "ACL_PRECISION_MODE",
             "ACL_OP_SELECT_IMPL_MODE"}
    for name in option:
        if name not in known:
            raise ValueError(f"set_option: {name!r} is not an option")


def is_current_stream_capturing() -> bool:
    """False: there are no graphs."""
    return False


def is_simulated() -> bool:
    """Whether the NPU is the simulator of this package."""
    return simulated()


_GRAPHS = "torch.npu.{0}: graphs of device work are not supported by this runtime"
_REFUSED = {"graph": _GRAPHS, "make_graphed_callables": _GRAPHS, "graph_pool_handle": _GRAPHS,
            "use_mem_pool": "torch.npu.{0}: memory pools of a program's own are not supported by this runtime",
            "change_current_allocator": "torch.npu.{0}: the allocator cannot be replaced in this runtime"}
_REFUSED_CLASSES = {"NPUGraph": _GRAPHS,
                    "MemPool": "torch.npu.{0}: memory pools of a program's own are not supported by this runtime",
                    "NPUPluggableAllocator": "torch.npu.{0}: the allocator cannot be replaced in this runtime",
                    "SyncLaunchStream": "torch.npu.{0}: set ASCEND_LAUNCH_BLOCKING=1 to wait after each op"}
_TENSORS = types_of("npu")


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return random.default_generators()
    if name == "mstx":  # it needs the profiler, which needs this package
        return import_module(f"{__name__}.mstx")
    if name in _REFUSED:
        found: Any = refusing(name, NotImplementedError, _REFUSED[name].format(name))
    elif name in _REFUSED_CLASSES:
        found = refusing_class(name, NotImplementedError, _REFUSED_CLASSES[name].format(name))
    elif name in _TENSORS:
        found = _TENSORS[name]
    else:
        raise AttributeError(f"module 'torch.npu' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_REFUSED, *_REFUSED_CLASSES, *_TENSORS, "default_generators", "mstx"})


__all__ = [
    "Event", "ExternalStream", "Stream", "StreamContext", "amp", "caching_allocator_alloc", "caching_allocator_delete",
    "can_device_access_peer", "config", "conv", "current_device", "current_stream", "default_stream", "device",
    "device_count", "device_of", "empty_cache", "get_allocator_backend", "get_amp_supported_dtype",
    "get_autocast_dtype", "get_device_capability", "get_device_name", "get_device_properties",
    "get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all", "host_empty_cache", "host_memory_stats",
    "init", "initial_seed", "is_autocast_enabled", "is_available", "is_bf16_supported", "is_initialized",
    "is_simulated", "manual_seed", "manual_seed_all", "matmul", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot",
    "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "random", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all",
    "set_autocast_dtype", "set_autocast_enabled", "set_compile_mode", "set_device", "set_option",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "set_sync_debug_mode",
    "stream", "synchronize", "unavailable_reason", "utilization",
]
