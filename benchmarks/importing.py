"""Time to import, in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys

from .timing import line

CODE = "from time import perf_counter as t; s = t(); import {module}; print(t() - s)"


def seconds(module: str) -> float:
    """One fresh import."""
    command = [sys.executable, "-c", CODE.format(module=module)]
    # pip compiles what it installs; a checkout is compiled by its first import, where that may write.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def run() -> None:
    """Print the best of nine imports of each, taking turns."""
    print("\nimport: ours, PyTorch, ratio")
    pairs = [(seconds("mindtorch_v2"), seconds("torch")) for _ in range(9)]
    print(line("import", min(p[0] for p in pairs), min(p[1] for p in pairs), 0.25, "ms"))
