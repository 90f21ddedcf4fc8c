"""`torch.profiler`: record, average, print and export what a program does."""

from __future__ import annotations

import gc
import importlib
from typing import Any

from mtprof.devices import DeviceType
from mtprof.loading import load
from mtprof.views.event_fields import RecordScope

from . import _memory_profiler, itt
from .activity import ProfilerActivity, _ExperimentalConfig, kineto_available, supported_activities
from .execution_trace import ExecutionTraceObserver
from .profiler import _KinetoProfile, profile, tensorboard_trace_handler
from .record_function import record_function
from .schedule import ProfilerAction, schedule
from .step_tracker import KinetoStepTracker, counts_for_daemon

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "_memory_profiler",
    "itt",
    "kineto_available",
    "load",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def _optimizer_stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
    KinetoStepTracker.increment_step("Optimizer")


if counts_for_daemon():
    importlib.import_module("..optim.optimizer", __name__).register_optimizer_step_post_hook(_optimizer_stepped)

# Importing the modules above leaves thousands of young objects. Without this, the garbage collector would scan them in
# the first recorded step.
if gc.isenabled():
    gc.collect(1)
