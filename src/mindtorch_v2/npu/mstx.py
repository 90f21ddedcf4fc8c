"""`torch.npu.mstx`: marks and ranges of a program's own, which a profile shows as scopes."""

from __future__ import annotations

import itertools
from typing import Any

from ..profiler.record_function import record_function

_numbers = itertools.count(1)
_open: dict[int, Any] = {}


def mark(message: str = "", stream: Any = None) -> None:
    """A moment."""
    with record_function(message):
        pass


def range_start(message: str, stream: Any = None) -> int:
    """Begin a range; returns its number."""
    number = next(_numbers)
    scope = record_function(message)
    scope.__enter__()
    _open[number] = scope
    return number


def range_end(range_id: int) -> None:
    """End a range."""
    scope = _open.pop(range_id, None)
    if scope is None:
        raise ValueError(f"mstx.range_end: no range has the number {range_id}")
    scope.__exit__(None, None, None)


def mstx_range(message: str, stream: Any = None) -> Any:
    """A range around a function, as a decorator."""
    return record_function(message)
