"""`torch.accelerator`: the device besides the CPU, whatever it is. There is none, which is what programs ask first."""

from __future__ import annotations

from typing import Any

from ._absent import refusing
from ._device import device

__all__ = ["current_accelerator", "device_count", "device_index", "is_available"]

REASON = "Cannot access accelerator device when none is available."
_REFUSED = frozenset({
    "current_device_idx", "current_device_index", "current_stream", "empty_cache", "empty_host_cache",
    "get_device_capability", "get_memory_info", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
    "set_device_index", "set_stream", "synchronize",
})


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_accelerator(check_available: bool = False) -> device | None:
    """None: this runtime has no device besides the CPU."""
    return None


class device_index:
    """The context of a device: can be made, not entered, unless it stands for no device."""

    def __init__(self, device: int | None) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise RuntimeError(REASON)

    def __exit__(self, *exc: object) -> None:
        return None


def __getattr__(name: str) -> Any:
    if name not in _REFUSED:
        raise AttributeError(f"module 'torch.accelerator' has no attribute '{name}'")
    found = globals()[name] = refusing(name, RuntimeError, REASON)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_REFUSED})
