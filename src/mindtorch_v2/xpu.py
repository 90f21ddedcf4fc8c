"""`torch.xpu` as in a build of PyTorch without Intel's GPUs: programs can ask whether they are there."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ._absent import AbsentDevice, AbsentStream, refusing, refusing_class
from ._device import DeviceLike

NOT_COMPILED = "Torch not compiled with XPU enabled"
_REFUSED = frozenset({
    "can_device_access_peer", "current_device", "current_stream", "get_device_capability", "get_device_name",
    "get_device_properties", "get_rng_state", "get_stream_from_external", "init", "initial_seed", "mem_get_info",
    "set_device", "set_rng_state", "set_stream", "synchronize",
})
_REFUSED_CLASSES = frozenset({"Event", "MemPool", "Stream", "XPUGraph", "XPUPluggableAllocator"})
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


def is_tf32_supported() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: as in PyTorch, a seed for a device that never comes is forgotten."""


manual_seed_all = manual_seed


def seed() -> None:
    """Nothing, as `manual_seed`."""


seed_all = seed


def empty_cache() -> None:
    """Nothing: there is no memory to give back."""


reset_peak_memory_stats = reset_accumulated_memory_stats = empty_cache


def is_current_stream_capturing() -> bool:
    """False."""
    return False


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of no devices; a state for one is refused."""
    for _ in new_states:
        raise AssertionError(NOT_COMPILED)


def get_arch_list() -> list[str]:
    """Nothing was compiled for any architecture."""
    return []


def get_rng_state_all() -> list[Any]:
    """The states of no devices."""
    return []


def memory_stats(device: DeviceLike = None) -> dict[str, Any]:
    """No figures."""
    return OrderedDict()


def memory_allocated(device: DeviceLike = None) -> int:
    """0 bytes."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


class device(AbsentDevice):
    """The context of a device: can be made, not entered, unless it stands for no device."""

    reason = NOT_COMPILED


class StreamContext(AbsentStream):
    """The context of a stream; without one it does nothing."""

    reason = NOT_COMPILED


def stream(stream: Any) -> StreamContext:
    """The context of a stream."""
    return StreamContext(stream)


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        found: Any = refusing(name, AssertionError, NOT_COMPILED)
    elif name in _REFUSED_CLASSES:
        found = refusing_class(name, RuntimeError, f"Tried to instantiate dummy base class {name}")
    else:
        raise AttributeError(f"module 'torch.xpu' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_REFUSED, *_REFUSED_CLASSES})
