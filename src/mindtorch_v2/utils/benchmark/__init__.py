"""`torch.utils.benchmark`: timing statements, comparing the times, making inputs at random."""

from __future__ import annotations

from .utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from .utils.compare import Colorize, Compare
from .utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from .utils.timer import Language, Timer, timer
from .utils.valgrind_wrapper.timer_interface import CallgrindStats, CopyIfCallgrind, FunctionCount, FunctionCounts

__all__ = [
    "CallgrindStats", "Colorize", "Compare", "CopyIfCallgrind", "FunctionCount", "FunctionCounts", "FuzzedParameter",
    "FuzzedTensor", "Fuzzer", "Language", "Measurement", "ParameterAlias", "TaskSpec", "Timer", "ordered_unique",
    "select_unit", "set_torch_threads", "timer", "trim_sigfig", "unit_to_english",
]
