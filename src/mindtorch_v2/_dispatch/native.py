"""The C twin of the recording code, where it was built: `NATIVE` is the module, or None.

It has the results of the Python code it stands for, at a fraction of the cost, and is never required. The environment
variable `MINDTORCH_NATIVE` decides: `0` never uses it, `1` fails where it is missing, otherwise it is used if it is
there.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

VERSION = 15  # of the interface: a build from older sources is as good as none


def load(wish: str) -> ModuleType | None:
    """The extension, if it is wanted, built for this version, and reads the same clock as Python does."""
    if wish == "0":
        return None
    try:
        module = import_module(".._native._recorder", __package__)
        if module.VERSION != VERSION:
            raise ImportError(f"_recorder has version {module.VERSION}, this needs {VERSION}: run 'make native'")
        if time.get_clock_info("perf_counter").implementation != "clock_gettime(CLOCK_MONOTONIC)":
            raise ImportError("_native._recorder reads CLOCK_MONOTONIC, but time.perf_counter() does not")
    except ImportError:
        if wish == "1":
            raise
        return None
    return module


NATIVE = load(os.environ.get("MINDTORCH_NATIVE", ""))
