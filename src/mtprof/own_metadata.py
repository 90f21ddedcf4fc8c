"""The values allowed under the metadata keys that this package reads, in files and from programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

STEP_STARTS = "step_starts_ns"  # under `mindtorch_v2`: calls of step(), from the trace's start
DEVICE_TIMES = "device_times"  # a list with an entry per device


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62


_EXPECTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "mindtorch_v2": (f"an object with {STEP_STARTS}, a list of integers", lambda value: isinstance(value, dict)
                     and isinstance(value.get(STEP_STARTS, []), list)
                     and all(map(_is_time, value.get(STEP_STARTS, [])))),
    "profiler_overhead_us": ("a number", _is_number),
    DEVICE_TIMES: ("a list of objects", lambda value: isinstance(value, list) and all(
        isinstance(one, dict) for one in value)),
    "other_categories": ("an object of texts", lambda value: isinstance(value, dict) and all(
        isinstance(one, str) for one in value.values())),
}


def check_metadata(metadata: dict[str, Any]) -> None:
    """Raise ValueError for a value that a reader of the key could not use."""
    for key, (what, fits) in _EXPECTED.items():
        if key in metadata and not fits(metadata[key]):
            raise ValueError(f"{key} in the metadata should be {what}, not {str(metadata[key])[:60]}")
