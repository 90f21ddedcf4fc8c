"""`torch.npu.mstx`: marks and ranges of a program's own, which a profile shows as scopes.

Scopes are on the host and have no domains: `stream` and `domain` are accepted and change nothing.
"""

from __future__ import annotations

import itertools
from typing import Any

from ..profiler.record_function import record_function

_numbers = itertools.count(1)
_open: dict[int, Any] = {}


def mark(message: str = "", stream: Any = None, domain: str = "default") -> None:
    """A moment."""
    with record_function(message):
        pass


def range_start(message: str, stream: Any = None, domain: str = "default") -> int:
    """Begin a range; returns its number."""
    number = next(_numbers)
    scope = record_function(message)
    scope.__enter__()
    _open[number] = scope
    return number


def range_end(range_id: int, domain: str = "default") -> None:
    """End a range."""
    scope = _open.pop(range_id, None)
    if scope is None:
        raise ValueError(f"mstx.range_end: no range has the number {range_id}")
    scope.__exit__(None, None, None)


def mstx_range(message: str, stream: Any = None, domain: str = "default") -> Any:
    """A range around a function, as a decorator."""
    return record_function(message)
