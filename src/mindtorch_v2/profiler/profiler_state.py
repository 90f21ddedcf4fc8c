"""PyTorch's names for the states of a profiler, and the settings that start one by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

from mtprof.codes import Numbered

from .activity import _ExperimentalConfig


class ProfilerState(Numbered):
    """The use of a profiler. Here it is always `KINETO`: all use the same recorder."""

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_PRIVATEUSE1 = 9


class ActiveProfilerType(Numbered):
    """The kind of the running profiler."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5


# The kinds of the running recordings, by the identities of their profilers, the latest last.
RUNNING: dict[int, ActiveProfilerType] = {}


@dataclass(frozen=True)
class ProfilerConfig:
    """What to record; the arguments of `profile` in the form that PyTorch passes to its recorder."""

    state: ProfilerState
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: _ExperimentalConfig = field(default_factory=_ExperimentalConfig)
    trace_id: str = ""
