"""The time of a profiler's own work: `prof._stats()`."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns


@dataclass
class _ProfilerStats:
    """Times in microseconds, except the window; 0 for what was not done yet."""

    profiling_window_duration_sec: float = 0.0
    number_of_events: int = 0
    profiler_prepare_call_duration_us: int = 0
    profiler_enable_call_duration_us: int = 0
    profiler_disable_call_duration_us: int = 0
    parse_kineto_call_duration_us: int = 0  # making a trace of the recording
    function_events_build_tree_call_duration_us: int = 0  # making events of the trace


def microseconds_since(start_ns: int) -> int:
    """The elapsed time; at least 1, to distinguish it from work that was not done."""
    return max(1, (perf_counter_ns() - start_ns) // 1000)
