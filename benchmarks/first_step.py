"""The first step of README's program under a profiler, beside its second: each pair in a fresh process.

Run as a module, this is one such process: it prints the processor milliseconds of both steps and the pages that each
touched for the first time.
"""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
from resource import RUSAGE_SELF, getrusage
from time import process_time

from .apart import RUNTIMES
from .timing import line

TURNS = 9


def run() -> None:
    """Print the median first and second step of both runtimes, and what a first step costs in second ones."""
    print("\nfirst and second step of README's program, processor time on one thread: ours, PyTorch, ratio")
    _one("ours")  # fills the cache of code, as the very first run on a machine does
    pairs: dict[str, list[list[float]]] = {which: [] for which in RUNTIMES}
    for _ in range(TURNS):
        for which in RUNTIMES:
            pairs[which].append(_one(which))
    first, second, pages = ({which: statistics.median(pair[i] for pair in pairs[which]) for which in RUNTIMES}
                            for i in (0, 1, 2))
    print(line("first step", first["ours"], first["theirs"], unit="ms"))
    print(line("second step", second["ours"], second["theirs"], unit="ms"))
    for which, name in (("ours", "ours"), ("theirs", "PyTorch")):
        ratio = first[which] / second[which]
        aim = "" if which == "theirs" else f"  aim <= 3 {'ok' if ratio <= 3 else 'MISSED'}"
        print(f"first in second steps, {name:<11} {ratio:10.1f}, {pages[which]:.0f} pages touched first{aim}")


def _one(which: str) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.first_step", which]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(which: str) -> None:
    """Two steps of README's program; prints seconds of the first and the second, and new pages of the first."""
    torch = importlib.import_module(RUNTIMES[which])
    torch.set_num_threads(1)  # so that threads that wait for work cost no processor time
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    seconds, pages = [], []
    with torch.profiler.profile(record_shapes=True, with_flops=True):
        for _ in range(2):
            start, touched = process_time(), getrusage(RUSAGE_SELF).ru_minflt
            with torch.profiler.record_function("step"):
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
            seconds.append(process_time() - start)
            pages.append(getrusage(RUSAGE_SELF).ru_minflt - touched)
    print(json.dumps([*seconds, pages[0]]))


if __name__ == "__main__":
    main(*sys.argv[1:])
