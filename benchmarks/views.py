"""From stop to results: tables, events and exports, per event and against PyTorch; and how ours scales."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from time import perf_counter
from typing import Any

import torch as theirs

import mindtorch_v2 as ours

from .timing import line

SIZES = (10_000, 100_000, 1_000_000, 5_000_000)

MEMORY = """
import mindtorch_v2 as torch

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

x = torch.ones(4); multiply = torch.mul; multiply(x, x)
with torch.profiler.profile(record_shapes=True):
    multiply(x, x)
    before = resident()
    for _ in range(1_000_000):
        multiply(x, x)
    print((resident() - before) / 1_000_000)
"""


def record(torch: Any, count: int) -> Any:
    """A stopped profiler with `count` events."""
    x = torch.ones(4)
    multiply = torch.mul
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        for _ in range(count):
            multiply(x, x)
    return prof


def measure(torch: Any, count: int) -> dict[str, float]:
    """Seconds for each result, of a fresh recording each, since results are kept."""
    found = {}
    prof = record(torch, count)
    start = perf_counter()
    prof.key_averages().table()
    found["stop() to table"] = perf_counter() - start
    prof = record(torch, count)
    start = perf_counter()
    events = prof.events()
    names = [(e.name, e.cpu_time_total, e.input_shapes) for e in events]
    found["events(), three fields of each"] = perf_counter() - start
    assert len(names) >= count
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        prof.export_chrome_trace(os.path.join(folder, "trace.json"))
        found["export_chrome_trace"] = perf_counter() - start
    return found


AIMS = {"stop() to table": 0.03, "events(), three fields of each": 0.1, "export_chrome_trace": 0.6}


def run() -> None:
    """Print the costs."""
    warnings.simplefilter("ignore")
    count = 100_000
    print(f"\nresults of {count} events: ours, PyTorch, ratio")
    mine, other = measure(ours, count), measure(theirs, count)
    for name, aim in AIMS.items():
        print(line(name, mine[name], other[name], aim, "ms"))
    print("\nours, microseconds an event")
    print(f"{'events':>10} {'record+stop':>12} {'table':>8} {'export':>8}")
    for size in SIZES:
        start = perf_counter()
        prof = record(ours, size)
        recorded = perf_counter() - start
        start = perf_counter()
        prof.key_averages().table()
        averaged = perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            start = perf_counter()
            prof.export_chrome_trace(os.path.join(folder, "trace.json"))
            exported = perf_counter() - start
        print(f"{size:>10} {recorded / size * 1e6:>12.2f} {averaged / size * 1e6:>8.2f} {exported / size * 1e6:>8.2f}")
        del prof
    held = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout
    print(f"memory held while recording: {float(held):.0f} bytes an event")
