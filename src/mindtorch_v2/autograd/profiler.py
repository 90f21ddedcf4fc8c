"""`torch.autograd.profiler`: the older face of the profiler, and its building blocks."""

from __future__ import annotations

from typing import Any

from ..profiler.activity import ProfilerActivity, kineto_available
from ..profiler.device_type import DeviceType
from ..profiler.record_function import record_function
from ..profiler.recorder import Recorder
from ..profiler.session import profile
from ..profiler.stats import _ProfilerStats
from ..profiler.step_tracker import KinetoStepTracker
from .profiler_util import (
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    EventList,
    FunctionEvent,
    MemRecordsAcc,
)


class EnforceUnique:
    """Raises when a key is seen twice.

    >>> import mindtorch_v2 as torch
    >>> unique = torch.autograd.profiler.EnforceUnique()
    >>> unique.see("a")
    """

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def see(self, *key: Any) -> None:
        """Note a key."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class _Marker:
    """Base of `emit_nvtx` and `emit_itt`, which need another vendor's library."""

    needs = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        raise RuntimeError(f"{type(self).__name__} needs {self.needs}, which this runtime does not use; "
                           "torch.profiler.profile records the same ranges")

    def __exit__(self, *exc: object) -> None:
        return None


class emit_nvtx(_Marker):
    """Not available: NVTX ranges belong to NVIDIA's tools."""

    needs = "CUDA and its NVTX library"


class emit_itt(_Marker):
    """Not available: ITT ranges belong to Intel's VTune."""

    needs = "Intel's ITT library"


def load_nvprof(path: str) -> Any:
    """Not available: reads databases of NVIDIA's nvprof."""
    raise NotImplementedError("load_nvprof: nvprof databases are not read by this runtime")


def parse_nvprof_trace(path: str) -> Any:
    """Not available, see `load_nvprof`."""
    return load_nvprof(path)


def __getattr__(name: str) -> Any:
    # Whether anything records; a variable in PyTorch, asked here so that it is never out of date.
    if name == "_is_profiler_enabled":
        return Recorder.session is not None
    raise AttributeError(f"module 'torch.autograd.profiler' has no attribute '{name}'")


__all__ = [
    "MEMORY_EVENT_NAME",
    "OUT_OF_MEMORY_EVENT_NAME",
    "DeviceType",
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "ProfilerActivity",
    "_ProfilerStats",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]
