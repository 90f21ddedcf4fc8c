"""The C twins of the recording code (`NATIVE`) and of the backward pass (`WALK`), or None if they were not built.

They give the results of the Python code that they replace, at a fraction of the cost, and are never required. The
environment variable `MINDTORCH_NATIVE` decides: with `0` they are never used, with `1` a missing one is an error,
otherwise they are used if they exist.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

# Of the interfaces: a build from older sources is not used.
VERSION = 16
WALK_VERSION = 4


def load(wish: str) -> ModuleType | None:
    """The recorder, if it is wanted, built for this version, and reads the same clock as Python."""
    module = _built(".._native._recorder", VERSION, wish)
    if module is not None and (
            time.get_clock_info("perf_counter").implementation != "clock_gettime(CLOCK_MONOTONIC)"):
        if wish == "1":
            raise ImportError("_native._recorder reads CLOCK_MONOTONIC, but time.perf_counter() does not")
        return None
    return module


def _built(name: str, version: int, wish: str) -> ModuleType | None:
    """An extension, if it is wanted and built for this version."""
    if wish == "0":
        return None
    try:
        module = import_module(name, __package__)
        if version != module.VERSION:
            raise ImportError(f"{name} has version {module.VERSION}, this needs {version}: run 'make native'")
    except ImportError:
        if wish == "1":
            raise
        return None
    return module


WISH = os.environ.get("MINDTORCH_NATIVE", "")
NATIVE = load(WISH)
WALK = _built(".._autograd._walk", WALK_VERSION, WISH)
