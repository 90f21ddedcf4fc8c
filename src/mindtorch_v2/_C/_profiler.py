"""`torch._C._profiler`: the types of the profiler under the names of PyTorch's C++ side."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from mtprof.views.event_fields import AllocationFields as _ExtraFields_Allocation
from mtprof.views.event_fields import BackendFields as _ExtraFields_Backend
from mtprof.views.event_fields import EventType as _EventType
from mtprof.views.event_fields import KinetoFields as _ExtraFields_Kineto
from mtprof.views.event_fields import NNModuleInfo as _NNModuleInfo
from mtprof.views.event_fields import OptimizerInfo as _OptimizerInfo
from mtprof.views.event_fields import OutOfMemoryFields as _ExtraFields_OutOfMemory
from mtprof.views.event_fields import PyCallFields as _ExtraFields_PyCall
from mtprof.views.event_fields import PyCCallFields as _ExtraFields_PyCCall
from mtprof.views.event_fields import PyFrameState as _PyFrameState
from mtprof.views.event_fields import RecordScope
from mtprof.views.event_fields import TensorMetadata as _TensorMetadata
from mtprof.views.event_fields import TorchOpFields as _ExtraFields_TorchOp
from mtprof.views.event_fields import VulkanFields as _ExtraFields_Vulkan
from mtprof.views.event_tree import ProfilerEvent as _ProfilerEvent

from .._dispatch.observer import HOOK
from ..profiler.activity import ProfilerActivity, _ExperimentalConfig
from ..profiler.fast_scope import _RecordFunctionFast
from ..profiler.native_symbols import symbolize_addresses
from ..profiler.profiler_state import ActiveProfilerType, ProfilerConfig, ProfilerState
from ..profiler.switches import (
    _set_cuda_sync_enabled_val,
    _set_fwd_bwd_enabled_val,
    _set_record_concrete_inputs_enabled_val,
)

__all__ = [
    "ActiveProfilerType",
    "ProfilerActivity",
    "ProfilerConfig",
    "ProfilerState",
    "RecordScope",
    "_EventType",
    "_ExperimentalConfig",
    "_ExtraFields_Allocation",
    "_ExtraFields_Backend",
    "_ExtraFields_Kineto",
    "_ExtraFields_OutOfMemory",
    "_ExtraFields_PyCCall",
    "_ExtraFields_PyCall",
    "_ExtraFields_TorchOp",
    "_ExtraFields_Vulkan",
    "_NNModuleInfo",
    "_OptimizerInfo",
    "_ProfilerEvent",
    "_PyFrameState",
    "_RecordFunctionFast",
    "_TensorMetadata",
    "_get_approximate_time",
    "_set_cuda_sync_enabled_val",
    "_set_fwd_bwd_enabled_val",
    "_set_record_concrete_inputs_enabled_val",
    "gather_traceback",
    "symbolize_addresses",
    "symbolize_tracebacks",
]



class CapturedTraceback:
    """The Python frames of a moment, innermost first; there are no others here."""

    def __init__(self, frame: FrameType | None) -> None:
        self.frames: list[dict[str, Any]] = []
        while frame is not None:
            self.frames.append({"name": frame.f_code.co_name, "filename": frame.f_code.co_filename,
                                "line": frame.f_lineno})
            frame = frame.f_back


def gather_traceback(python: bool, script: bool, cpp: bool) -> CapturedTraceback:
    """The frames that led here: those of Python, if they are wanted."""
    return CapturedTraceback(sys._getframe(1) if python else None)


def symbolize_tracebacks(to_symbolize: list[CapturedTraceback]) -> list[list[dict[str, Any]]]:
    """Name, file and line of the frames of each."""
    return [one.frames for one in to_symbolize]


def _get_approximate_time() -> int:
    """The clock of the profiler's events, in nanoseconds from an arbitrary start."""
    return int(HOOK["clock"]())
