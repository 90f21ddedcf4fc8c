"""`torch.backends.cudnn`: not there. The flags can be set and read back, since programs set them unasked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None: there is no cuDNN."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """False: no tensor can be on a CUDA device."""
    return False


def set_flags(_enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None,
              _deterministic: bool | None = None, _allow_tf32: bool | None = None) -> tuple[Any, ...]:
    """Set several flags; returns what they were."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    before = tuple(globals()[name] for name in names)
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    globals().update({name: value for name, value in zip(names, given, strict=True) if value is not None})
    return before


@contextlib.contextmanager
def flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False,
          allow_tf32: bool = True) -> Iterator[None]:
    """Set the flags inside a block."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
        globals().update(zip(names, before, strict=True))
