"""Runs the benchmarks named on the command line, or all. What follows a name goes to that benchmark: kernels large 1"""

from __future__ import annotations

import importlib
import importlib.util
import sys

ALL = ("importing", "first_step", "ops", "kernels", "mlp", "models", "recording", "recording_models", "views", "traces",
       "npu", "holistic", "ranks")
WITH_WISHES = ("kernels",)


def main(names: list[str]) -> None:
    """Run benchmarks by module name, each with the words that follow it."""
    if importlib.util.find_spec("torch") is None:
        sys.exit("the benchmarks compare with PyTorch, which is not installed: pip install -r requirements-oracle.txt")
    wanted: list[tuple[str, list[str]]] = [] if names else [(name, []) for name in ALL]
    for name in names:
        if name in ALL:
            wanted.append((name, []))
        elif wanted and wanted[-1][0] in WITH_WISHES:
            wanted[-1][1].append(name)
        else:
            sys.exit(f"no benchmark '{name}'; there are: {', '.join(ALL)}")
    for name, wishes in wanted:
        importlib.import_module(f"benchmarks.{name}").run(*wishes)


if __name__ == "__main__":
    main(sys.argv[1:])
