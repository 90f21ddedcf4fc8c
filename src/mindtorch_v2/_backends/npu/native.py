"""The launcher in C, or None if it was not built: then the Python functions that it replaces run.

`MINDTORCH_NPU_LAUNCHER=python` leaves it out.
"""

from __future__ import annotations

import os
from typing import Any

LAUNCH: Any = None
if os.environ.get("MINDTORCH_NPU_LAUNCHER", "c") != "python":
    try:
        from . import _launch as LAUNCH  # type: ignore[attr-defined,no-redef]
    except ImportError:
        LAUNCH = None
