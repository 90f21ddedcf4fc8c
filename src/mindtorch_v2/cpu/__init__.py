"""`torch.cpu`: the one device that is always there; everything on it is done when a call returns."""

from __future__ import annotations

import os
import platform
import re
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .._device import DeviceLike
from . import amp as amp
from .memory import max_memory_allocated as max_memory_allocated
from .memory import memory_allocated as memory_allocated
from .memory import memory_stats as memory_stats
from .memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from .memory import reset_peak_memory_stats as reset_peak_memory_stats


class Stream:
    """The order of the program; there is no other."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""


class Event:
    """A moment that has always passed."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing to record."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""


_STREAM = Stream()


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """"cpu"."""
    return "cpu"


def set_device(device: DeviceLike) -> None:
    """Nothing: there is one."""


def synchronize(device: DeviceLike = None) -> None:
    """Nothing to wait for."""


def current_stream(device: DeviceLike = None) -> Stream:
    """The only stream."""
    return _STREAM


def stream(stream: Stream) -> AbstractContextManager[Any]:
    """A context that changes nothing."""
    return nullcontext()


def get_capabilities() -> dict[str, Any]:
    """What the processor can do, as NumPy finds out: `{"avx2": True, "avx512_vnni": False, …}`."""
    core: Any = np.core if np.__version__ < "2" else np._core
    found = {_capability(name): bool(there) for name, there in core._multiarray_umath.__cpu_features__.items()}
    return {**found, "architecture": platform.machine(), "num_logical_cores": os.cpu_count() or 1}


def _capability(name: str) -> str:
    """PyTorch's name of an instruction set that NumPy calls `AVX512VNNI` or `SSE41`."""
    name = re.sub("^avx512_?(?=.)", "avx512_", name.lower())
    return {"sse41": "sse4_1", "sse42": "sse4_2"}.get(name, name)


def _is_avx2_supported() -> bool:
    """Whether the processor has AVX2."""
    return bool(get_capabilities().get("avx2", False))


def _is_avx512_supported() -> bool:
    """Whether the processor has AVX-512."""
    return bool(get_capabilities().get("avx512_f", False))


def _is_vnni_supported() -> bool:
    """Whether the processor multiplies bytes in vectors."""
    return bool(get_capabilities().get("avx512_vnni", False))
