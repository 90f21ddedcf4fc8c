"""`torch.profiler`: record, average, print and export what a program does."""

from __future__ import annotations

from . import _memory_profiler, itt
from .activity import ProfilerActivity, _ExperimentalConfig, kineto_available, supported_activities
from .device_type import DeviceType
from .execution_trace import ExecutionTraceObserver
from .profiler import _KinetoProfile, profile, tensorboard_trace_handler
from .record_function import record_function
from .schedule import ProfilerAction, schedule

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "_memory_profiler",
    "itt",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
