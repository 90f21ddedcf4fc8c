"""`torch.autograd.profiler`: the older face of the profiler, and its building blocks."""

from __future__ import annotations

import importlib
from typing import Any

from mtprof.devices import DeviceType

from ..profiler.activity import ProfilerActivity, kineto_available
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
    _filter_name,
    _filter_stack_entry,
    _rewrite_name,
)

# Names that are here in PyTorch because it uses them here. `_C` is made of these modules, so it comes later.
_LATE = dict.fromkeys(("_ProfilerResult", "_disable_profiler", "_enable_profiler", "_kineto_step", "_prepare_profiler",
                       "_supported_activities", "_toggle_collection_dynamic"), "._C._autograd")
_LATE.update(dict.fromkeys(("ProfilerConfig", "ProfilerState", "_ExperimentalConfig"), "._C._profiler"))


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


_others: set[bool] = set()  # True while a profiler that is not of this package says that it records


def _set_is_profiler_enabled(enable: bool) -> None:
    """For profilers of other makers: what `_is_profiler_enabled` says while none of this package records."""
    (_others.add if enable else _others.discard)(True)


def _run_on_profiler_start() -> None:
    """Such a profiler starts."""
    _set_is_profiler_enabled(True)


def _run_on_profiler_stop() -> None:
    """Such a profiler has stopped."""
    _set_is_profiler_enabled(False)


def __getattr__(name: str) -> Any:
    # Whether anything records; a variable in PyTorch, asked here so that it is never out of date.
    if name == "_is_profiler_enabled":
        return Recorder.running is not None or bool(_others)
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name], __name__.partition(".")[0]), name)
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
    "_filter_name",
    "_filter_stack_entry",
    "_rewrite_name",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]
