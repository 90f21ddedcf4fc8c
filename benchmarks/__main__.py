"""Runs the benchmarks named on the command line, or all."""

from __future__ import annotations

import importlib
import importlib.util
import sys

ALL = ("importing", "ops", "kernels", "mlp", "models", "recording", "recording_models", "views", "traces", "npu",
       "holistic")


def main(names: list[str]) -> None:
    """Run benchmarks by module name."""
    if importlib.util.find_spec("torch") is None:
        sys.exit("the benchmarks compare with PyTorch, which is not installed: pip install -r requirements-oracle.txt")
    for name in names or ALL:
        if name not in ALL:
            sys.exit(f"no benchmark '{name}'; there are: {', '.join(ALL)}")
        importlib.import_module(f"benchmarks.{name}").run()


if __name__ == "__main__":
    main(sys.argv[1:])
