"""Fair timing: the two sides take turns, and each is judged by its best round."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter, process_time, sleep

Work = Callable[[], object]


def best_of(works: list[Work], rounds: int = 9, seconds: float = 0.05,
            clock: Callable[[], float] = perf_counter, alone: bool = False) -> list[float]:
    """Seconds per call of each function: its best round, with the rounds of all functions interleaved.

    `alone` lets the threads of the round before fall asleep first: PyTorch's look for work for some milliseconds, on a
    processor that a short round of the other side needs.
    """
    counts = [_calls_for(work, seconds) for work in works]
    best = [float("inf")] * len(works)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for i, (work, count) in enumerate(zip(works, counts)):
                if alone:
                    _fall_asleep()
                    work()
                start = clock()
                for _ in range(count):
                    work()
                best[i] = min(best[i], (clock() - start) / count)
    finally:
        gc.enable()
    return best


def _fall_asleep() -> None:
    """Wait until no thread of this process computes, but not for long."""
    for _ in range(10):
        before = process_time()
        sleep(0.003)
        if process_time() - before < 0.0003:
            return


def _calls_for(work: Work, seconds: float) -> int:
    work()
    start = perf_counter()
    work()
    once = max(perf_counter() - start, 1e-7)
    return max(1, int(seconds / once))


def line(name: str, ours: float, theirs: float, target: float | None = None, unit: str = "us") -> str:
    """One row: name, both times, their ratio and what was aimed at."""
    scale = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}[unit]
    aim = "" if target is None else f"  aim <= {target:g} {'ok' if ours / theirs <= target else 'MISSED'}"
    return f"{name:<34} {ours * scale:>10.2f} {theirs * scale:>10.2f} {unit:<3} ratio {ours / theirs:5.2f}{aim}"
