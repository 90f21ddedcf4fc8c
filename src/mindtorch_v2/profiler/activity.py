"""The activities that a profiler records, and the experimental options."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mtprof.codes import Numbered

from .._backends.base import DEVICES
from .._backends.npu.runtime import unusable_reason
from .._device import MEANT


class ProfilerActivity(Numbered):
    """A source of events. `NPU` is PyTorch's `PrivateUse1`."""

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5
    NPU = PrivateUse1


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be recorded here."""
    return {ProfilerActivity.CPU, *([ProfilerActivity.PrivateUse1] if unusable_reason() is None else [])}


def kineto_available() -> bool:
    """Whether full profiling is available: always, it is part of this runtime."""
    return True


_DEVICE_WORK = ("GPU_MEMCPY", "GPU_MEMSET", "CONCURRENT_KERNEL")
# PyTorch's names of the kinds of events that an activity has; in a file they are the categories of events.
MEMBERS: dict[ProfilerActivity, tuple[str, ...]] = {
    ProfilerActivity.CPU: ("CPU_OP", "USER_ANNOTATION", "EXTERNAL_CORRELATION", "CUDA_RUNTIME", "CUDA_DRIVER",
                           "XPU_RUNTIME", "XPU_DRIVER", "PYTHON_FUNCTION", "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER",
                           "CPU_INSTANT_EVENT"),
    ProfilerActivity.CUDA: (*_DEVICE_WORK, "GPU_USER_ANNOTATION", "CUDA_RUNTIME", "CUDA_DRIVER", "OVERHEAD"),
    ProfilerActivity.XPU: (*_DEVICE_WORK, "XPU_RUNTIME", "XPU_DRIVER"),
    ProfilerActivity.MTIA: ("MTIA_RUNTIME", "MTIA_INSIGHT", "MTIA_CCP_EVENTS", "MTIA_COUNTERS"),
    ProfilerActivity.HPU: ("HPU_OP",),
    ProfilerActivity.PrivateUse1: (*_DEVICE_WORK, "GPU_USER_ANNOTATION", "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER"),
}
_CATEGORIES = {"CONCURRENT_KERNEL": "kernel"}  # the others have the same name in lower case


def check_filters(filters: Mapping[ProfilerActivity, set[str]]) -> None:
    """Raise PyTorch's error for a name that an activity does not have."""
    for activity, names in filters.items():
        for name in sorted(names, key=str):
            if not isinstance(name, str):
                raise TypeError(f"names of activity types are strings, got {type(name).__name__} for {activity}")
            if name not in MEMBERS[activity]:
                raise RuntimeError(f"Unknown or non-member activity type name: '{name}'")


def categories(activities: Iterable[ProfilerActivity], filters: Mapping[ProfilerActivity, set[str]]) -> set[str] | None:
    """The categories of events in an exported trace; None for all."""
    if not filters:
        return None
    names = {name for activity in activities for name in filters.get(activity, MEMBERS[activity])}
    return {_CATEGORIES.get(name, name.lower()) for name in names}


def _meant(item: Any) -> Any:
    """The NPU, if the program has said that CUDA means it."""
    if MEANT.get("cuda") != "npu":
        return item
    if isinstance(item, dict):
        return {_meant(activity): names for activity, names in item.items()}
    return ProfilerActivity.PrivateUse1 if item is ProfilerActivity.CUDA else item


def split_activities(
    given: Iterable[Any] | None,
) -> tuple[set[ProfilerActivity], dict[ProfilerActivity, set[str]]]:
    """Activities and their filters from PyTorch's argument: a sequence of activities or `{activity: [categories]}`."""
    if given is None:
        return supported_activities(), {}
    activities: set[ProfilerActivity] = set()
    filters: dict[ProfilerActivity, set[str]] = {}
    for item in map(_meant, given):
        if not isinstance(item, (dict, ProfilerActivity)):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for activity in item if isinstance(item, dict) else (item,):
            if activity in activities:
                raise ValueError(f"Activity {activity} specified more than once")
            activities.add(activity)
            if isinstance(item, dict):
                filters[activity] = set(item[activity])
    return activities, filters


# Devices that PyTorch can record and this runtime does not have.
ELSEWHERE = {ProfilerActivity.CUDA: "cuda", ProfilerActivity.XPU: "xpu", ProfilerActivity.MTIA: "mtia",
             ProfilerActivity.HPU: "hpu"}


def device_of(activities: set[ProfilerActivity]) -> str | None:
    """The device, besides the CPU, to record."""
    if ProfilerActivity.PrivateUse1 in activities:
        return "npu"
    return next((name for activity, name in ELSEWHERE.items() if activity in activities), None)


def available(use_device: str | None, stacklevel: int) -> str | None:
    """A device to record, or None with a warning if it is missing."""
    if use_device in ("npu", "privateuse1"):
        reason = unusable_reason()
        if reason is None:
            return "npu"
        warnings.warn(f"NPU is not available, disabling NPU profiling: {reason}", UserWarning,
                      stacklevel=stacklevel + 1)
        return None
    if use_device is None or (use_device in DEVICES and DEVICES[use_device].activities() is not None):
        return use_device
    name = use_device.upper()
    warnings.warn(f"{name} is not available, disabling {name} profiling" if use_device in ELSEWHERE.values() else
                  f"The {use_device} is not a valid device option: it keeps no log of its work.", UserWarning,
                  stacklevel=stacklevel + 1)
    return None


@dataclass(eq=False)  # two of them are never equal, as in PyTorch
class _ExperimentalConfig:
    """Switches of PyTorch's profiler.

    `record_python_gc_info` makes an event `Python GC` for each pause of Python's garbage collector; PyTorch also needs
    `with_stack=True` for that, this profiler does not. With `trace_only`, only exports of the trace work: `events()`
    and `key_averages()` raise. With `adjust_profiler_step` and stacks, a step begins with the Python call in which it
    ends. With `expose_kineto_event_metadata`, events know their number in an exported file. With
    `capture_overload_names`, an exported trace names ops with their overloads, `aten::add.Tensor`.

    The others concern CUPTI and Kineto's internals, or ask for what is always recorded here (all threads, stacks in the
    file). They are accepted without effect.
    """

    profiler_metrics: list[str] = field(default_factory=list)
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: list[str] = field(default_factory=list)
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = False
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False


def consistent(config: _ExperimentalConfig | None, with_stack: bool) -> _ExperimentalConfig:
    """The options, or the defaults; without `trace_only` if stacks are requested, because these need the events."""
    if config is None:
        return _ExperimentalConfig()
    if config.trace_only and with_stack:
        warnings.warn("trace_only=True is incompatible with with_stack=True (stack traces require event "
                      "post-processing). Disabling trace_only.", UserWarning, stacklevel=4)
        return replace(config, trace_only=False)
    return config
