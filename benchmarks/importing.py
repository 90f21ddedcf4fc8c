"""Time to import, in fresh processes."""

from __future__ import annotations

import subprocess
import sys

from .timing import line

CODE = "from time import perf_counter as t; s = t(); import {module}; print(t() - s)"


def seconds(module: str) -> float:
    """Best of five fresh imports."""
    times = []
    for _ in range(5):
        command = [sys.executable, "-c", CODE.format(module=module)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    return min(times)


def run() -> None:
    """Print both import times."""
    print("\nimport: ours, PyTorch, ratio")
    print(line("import", seconds("mindtorch_v2"), seconds("torch"), 0.25, "ms"))
