"""Which sources a profiler listens to, and the experimental switches."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any


class ProfilerActivity(Enum):
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
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Whether full profiling is available: always, it is part of this runtime."""
    return True


def split_activities(
    given: Iterable[Any] | None,
) -> tuple[set[ProfilerActivity], dict[ProfilerActivity, set[str]]]:
    """Activities and their filters from PyTorch's argument: a sequence of activities or `{activity: [categories]}`."""
    if given is None:
        return supported_activities(), {}
    activities: set[ProfilerActivity] = set()
    filters: dict[ProfilerActivity, set[str]] = {}
    for item in given:
        if isinstance(item, dict):
            for activity, categories in item.items():
                activities.add(activity)
                filters.setdefault(activity, set()).update(categories)
        elif isinstance(item, ProfilerActivity):
            activities.add(item)
    if not activities:
        raise AssertionError("No valid profiler activities found")
    return activities, filters


# Devices that PyTorch can record and this runtime does not have.
ELSEWHERE = {ProfilerActivity.CUDA: "cuda", ProfilerActivity.XPU: "xpu", ProfilerActivity.MTIA: "mtia",
             ProfilerActivity.HPU: "hpu"}


def device_of(activities: set[ProfilerActivity]) -> str | None:
    """The device, besides the CPU, that is to be recorded."""
    return next((name for activity, name in ELSEWHERE.items() if activity in activities), None)


def available(use_device: str | None, stacklevel: int) -> str | None:
    """A device that is to be recorded, or None, with a warning, if it is not there."""
    if use_device not in ELSEWHERE.values():
        return use_device
    name = use_device.upper()  # type: ignore[union-attr]
    warnings.warn(f"{name} is not available, disabling {name} profiling", UserWarning, stacklevel=stacklevel + 1)
    return None


@dataclass
class _ExperimentalConfig:
    """Switches of PyTorch's profiler.

    `record_python_gc_info` makes an event `Python GC` of each pause of Python's garbage collector; PyTorch needs
    `with_stack=True` for that as well, this profiler does not. With `trace_only`, only exports of the trace are wanted:
    `events()` and `key_averages()` raise. With `adjust_profiler_step` and stacks, a step begins with the Python call
    that it ends in. With `expose_kineto_event_metadata`, events know their number in an exported file.

    The others concern CUPTI and Kineto's internals, or ask for what is always recorded here (all threads, overload
    names, stacks in the file); they are accepted without effect.
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


def consistent(config: _ExperimentalConfig, with_stack: bool) -> _ExperimentalConfig:
    """The switches without `trace_only` where stacks are asked for, which need the events."""
    if config.trace_only and with_stack:
        warnings.warn("trace_only=True is incompatible with with_stack=True (stack traces require event "
                      "post-processing). Disabling trace_only.", UserWarning, stacklevel=4)
        return replace(config, trace_only=False)
    return config
