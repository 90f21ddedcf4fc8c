"""The common kernels at three sizes, forward and backward together where there is a gradient, the slowest first.

On one thread each side is judged by the processor time of its best round, because the machine may be shared; on more by
the clock. `python -m benchmarks kernels` prints everything that is slower than PyTorch; with names of sizes, numbers of
threads or words after it (`kernels large 1 pool`), only those.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter, thread_time

import torch as theirs

import mindtorch_v2 as ours

from .kernel_cases import CASES, SIZES
from .timing import best_of, line

AIM = 1.5


def measure(size: str, threads: int, words: Sequence[str], rounds: int = 4, seconds: float = 0.002
            ) -> list[tuple[str, float, float]]:
    """Name and both runtimes' seconds for each kernel whose name has one of the words, the slowest ratio first."""
    clock = thread_time if threads == 1 else perf_counter
    for torch in (ours, theirs):
        torch.set_num_threads(threads)
    found = []
    for name, case in CASES.items():
        if words and not any(word in name for word in words):
            continue
        works = [case.build(torch, SIZES[size]) for torch in (ours, theirs)]
        found.append((name, *best_of(works, rounds, seconds, clock, alone=threads > 1)))
    return sorted(found, key=lambda row: -row[1] / row[2])


def run(*wishes: str) -> None:
    """Print the kernels that are slower than PyTorch's, and how many there are of which ratio."""
    sizes = [wish for wish in wishes if wish in SIZES] or list(SIZES)
    threads = [int(wish) for wish in wishes if wish.isdecimal()] or [1, 2]
    words = [wish for wish in wishes if wish not in SIZES and not wish.isdecimal()]
    for count in threads:
        for size in sizes:
            found = measure(size, count, words)
            time = "processor time" if count == 1 else "time by the clock"
            print(f"\nkernels, {size}, threads: {count}, {time}: ours, PyTorch, ratio")
            for name, mine, other in found:
                if words or mine > other:
                    print(line(name, mine, other, AIM))
            above = sum(mine > AIM * other for _, mine, other in found)
            print(f"of {len(found)} kernels {sum(mine <= other for _, mine, other in found)} are as fast or faster, "
                  f"{above} above {AIM}", flush=True)
