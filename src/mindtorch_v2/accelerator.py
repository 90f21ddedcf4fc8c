"""`torch.accelerator`: the device besides the CPU, whatever it is. Here it is the NPU, if there is one."""

from __future__ import annotations

from typing import Any

from ._device import DeviceLike, as_device, device
from ._dtype import bfloat16, bool_, float16, float32, float64, int8, int16, int32, int64, uint8

REASON = "Cannot access accelerator device when none is available."
__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is one."""
    from . import npu

    return npu.is_available()


def device_count() -> int:
    """How many there are."""
    from . import npu

    return npu.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of device, without a number; None if there is none."""
    return device("npu") if is_available() else None


def _npu() -> Any:
    from . import npu

    if not npu.is_available():
        raise RuntimeError(REASON)
    return npu


def _index(where: Any) -> int | None:
    """The number of a device that has to be an accelerator."""
    npu = _npu()
    if where is None:
        return npu.current_device()
    if isinstance(where, int):
        return where
    found = as_device(where)
    if found.type != "npu":
        raise ValueError(f"{found.type} doesn't match the current accelerator npu.")
    return npu.current_device() if found.index is None else found.index


def current_device_index() -> int:
    """The number of the thread's device."""
    return _npu().current_device()


def set_device_index(device: DeviceLike, /) -> None:
    """Make a device the thread's."""
    _npu().set_device(_index(device))


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_stream(device: DeviceLike = None, /) -> Any:
    """The stream that this thread's work is queued on."""
    return _npu().current_stream(_index(device))


def set_stream(stream: Any) -> None:
    """Queue this thread's work on a stream."""
    _npu().set_stream(stream)


def synchronize(device: DeviceLike = None, /) -> None:
    """Wait until a device has done all queued work."""
    _npu().synchronize(_index(device))


class device_index:
    """A block that uses a device as the thread's; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx: int | None = None

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def get_device_capability(device: DeviceLike = None, /) -> dict[str, Any]:
    """The dtypes that a device computes in."""
    _index(device)
    return {"supported_dtypes": {bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64}}


def empty_cache() -> None:
    """Give unused cached memory back to the devices."""
    _npu().empty_cache()


def empty_host_cache() -> None:
    """Free pinned memory that is not used."""
    _npu().host_empty_cache()


def memory_stats(device: DeviceLike = None, /) -> dict[str, Any]:
    """All counts of a device's allocator."""
    return _npu().memory_stats(_index(device))


def memory_allocated(device: DeviceLike = None, /) -> int:
    """Bytes of blocks that tensors have."""
    return _npu().memory_allocated(_index(device))


def max_memory_allocated(device: DeviceLike = None, /) -> int:
    """The most bytes that tensors had."""
    return _npu().max_memory_allocated(_index(device))


def memory_reserved(device: DeviceLike = None, /) -> int:
    """Bytes that the allocator has from the device."""
    return _npu().memory_reserved(_index(device))


def max_memory_reserved(device: DeviceLike = None, /) -> int:
    """The most bytes that the allocator had."""
    return _npu().max_memory_reserved(_index(device))


def reset_peak_memory_stats(device: DeviceLike = None, /) -> None:
    """Reset the peaks to the present values."""
    _npu().reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None, /) -> None:
    """Reset the sums of what was allocated and freed."""
    _npu().reset_accumulated_memory_stats(_index(device))


def get_memory_info(device: DeviceLike = None, /) -> tuple[int, int]:
    """Free and total memory of a device."""
    return _npu().mem_get_info(_index(device))
