"""Timing in processes of their own, in turns: libraries whose threads go on spinning would slow each other down.

Run as a module, this is one such process: it times a step of one runtime and prints its first loss and best time.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
from time import perf_counter, process_time

from .timing import best_of

RUNTIMES = {"ours": "mindtorch_v2", "theirs": "torch"}


def best_apart(case: str, rounds: int = 5, threads: int = 0, sizes: dict[str, int] | None = None
               ) -> tuple[float, float]:
    """Seconds per step of both runtimes: the best of some processes each. Their first losses must agree.

    With a number of threads, both are told to use that many, and processor time counts instead of the clock's.
    """
    best = dict.fromkeys(RUNTIMES, float("inf"))
    losses = {}
    for _ in range(rounds):
        for which in RUNTIMES:
            losses[which], seconds, _ = _run(which, case, threads, sizes)
            best[which] = min(best[which], seconds)
    if abs(losses["ours"] - losses["theirs"]) > 1e-3 * abs(losses["theirs"]):
        raise AssertionError(f"{case}: the first loss is {losses['ours']}, PyTorch's is {losses['theirs']}")
    return best["ours"], best["theirs"]


def memory_apart(case: str, which: str) -> float:
    """Megabytes that a process of one runtime has had at most."""
    return _run(which, case, 0)[2]


def _run(which: str, case: str, threads: int, sizes: dict[str, int] | None = None) -> tuple[float, float, float]:
    command = [sys.executable, "-m", "benchmarks.apart", which, case, str(threads), json.dumps(sizes or {})]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(which: str, case: str, threads: str, sizes: str = "{}") -> None:
    """Time one case of `models` on one runtime; prints its first loss, seconds per step and peak memory."""
    torch = importlib.import_module(RUNTIMES[which])
    if threads != "0":
        torch.set_num_threads(int(threads))
    step = getattr(importlib.import_module("benchmarks.models"), case)(torch, **json.loads(sizes))
    first = float(step().detach())
    seconds = best_of([step], rounds=15, seconds=0.1, clock=perf_counter if threads == "0" else process_time)
    print(json.dumps([first, *seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


if __name__ == "__main__":
    main(*sys.argv[1:])
