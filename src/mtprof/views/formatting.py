"""The format of times, sizes and names, and which names and stack entries are left out."""

from __future__ import annotations

from typing import Any

from .string_table import StringTable

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"

# Bookkeeping of the profiler and of autograd: PyTorch never shows these as events.
HIDDEN_NAMES = frozenset({
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
})

STEP_PREFIX = "ProfilerStep#"
STEP_WILDCARD = "ProfilerStep*"

# (part of the file, part of the function): frames of the machinery between the user's line and the op.
_HIDDEN_FRAMES = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)

_TIME_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}  # microseconds in each, largest first
_MEMORY_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


def _format_time(time_us: float) -> str:
    """Microseconds in the largest unit that leaves at least one whole: `1.500ms`."""
    for unit, size in _TIME_UNITS.items():
        if time_us >= size:
            return f"{time_us / size:.3f}{unit}"
    return f"{time_us:.3f}us"


def format_time_in(time_us: float, unit: str | None) -> str:
    """Microseconds in a given unit; any other unit, also None, means the unit that fits."""
    if unit in _TIME_UNITS:
        return f"{time_us / _TIME_UNITS[unit]:.3f}{unit}"
    return _format_time(time_us)


def _format_time_share(time_us: float, total_time_us: float) -> str:
    """A percentage; "NaN" if the whole is 0."""
    if total_time_us:
        return f"{time_us * 100.0 / total_time_us:.2f}%"
    if time_us:
        raise AssertionError(f"Expected time_us == 0 but got {time_us}")
    return "NaN"


def _format_memory(nbytes: int) -> str:
    """A size with its sign, in units of 1024."""
    for unit, size in _MEMORY_UNITS:
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _attr_formatter(name: str) -> property:
    """A property that formats the time attribute `name`."""

    def formatted(self: Any) -> str:
        return _format_time(getattr(self, name))

    formatted.__doc__ = f"`{name}` with its unit."
    return property(formatted)


def _filter_stack_entry(entry: str) -> bool:
    """Whether a stack entry is worth showing."""
    return not any(file in entry and function in entry for file, function in _HIDDEN_FRAMES)


def _filter_name(name: str) -> bool:
    """Whether an event of this name is left out."""
    return name in HIDDEN_NAMES


def _rewrite_name(name: str, with_wildcard: bool = False) -> str:
    """The name to show: C++ symbols demangled; with `with_wildcard`, all profiler steps share one name."""
    shown = StringTable()[name]
    return STEP_WILDCARD if with_wildcard and shown.startswith(STEP_PREFIX) else shown
