"""Timing in processes of their own, in turns: libraries whose threads go on spinning would slow each other down.

Run as a module, this is one such process: it times a step of one runtime and prints its first loss and best time.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

from .timing import best_of

RUNTIMES = {"ours": "mindtorch_v2", "theirs": "torch"}


def best_apart(case: str, rounds: int = 5) -> tuple[float, float]:
    """Seconds per step of both runtimes: the best of some processes each. Their first losses must agree."""
    best = dict.fromkeys(RUNTIMES, float("inf"))
    losses = {}
    for _ in range(rounds):
        for which in RUNTIMES:
            command = [sys.executable, "-m", "benchmarks.apart", which, case]
            losses[which], seconds = json.loads(subprocess.run(command, capture_output=True, text=True,
                                                               check=True).stdout)
            best[which] = min(best[which], seconds)
    if abs(losses["ours"] - losses["theirs"]) > 1e-3 * abs(losses["theirs"]):
        raise AssertionError(f"{case}: the first loss is {losses['ours']}, PyTorch's is {losses['theirs']}")
    return best["ours"], best["theirs"]


def main(which: str, case: str) -> None:
    """Time one case of `models` on one runtime."""
    build = getattr(importlib.import_module("benchmarks.models"), case)
    step = build(importlib.import_module(RUNTIMES[which]))
    first = float(step().detach())
    print(json.dumps([first, *best_of([step], rounds=15, seconds=0.1)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
