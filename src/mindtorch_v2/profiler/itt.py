"""`torch.profiler.itt`: ranges for Intel VTune. This runtime has no ITT library; the functions say so."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

MISSING = "ITT functions not installed: this runtime is not built with Intel's ITT library; use record_function instead"


def is_available() -> bool:
    """Whether ITT ranges can be emitted: no."""
    return False


def range_push(msg: str) -> None:
    """Open a range."""
    raise RuntimeError(MISSING)


def range_pop() -> None:
    """Close a range."""
    raise RuntimeError(MISSING)


def mark(msg: str) -> None:
    """Mark an instant."""
    raise RuntimeError(MISSING)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Any:
    """A range around a block."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]
