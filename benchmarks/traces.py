"""Trace files: time and memory of writing, opening and summing up, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

KINETO_EVENTS, OWN_EVENTS = 1_000_000, 10_000_000

# What every child starts with: a made-up trace, a meter of processor time and memory.
COMMON = """
import resource, sys, time
import numpy as np
from mtprof.builder import TraceBuilder
from mtprof.trace import TensorInput, ThreadInfo

def made(count):
    build = TraceBuilder()
    threads = [build.thread(ThreadInfo(100, 100 + number)) for number in range(2)]
    names = np.array([build.name(f"aten::op{number}") for number in range(60)], np.int32)
    inputs = np.array([build.input((TensorInput((number + 1, 64), "float32", (64, 1)),
                                    TensorInput((64, 64), "float32", (64, 1)), 1.0)) for number in range(40)], np.int32)
    random = np.random.default_rng(0)
    base = np.arange(count // 4)[:, None] * 4440  # an op with two inside, one of which has one inside
    start, end = ((base + np.array(places) * 37).ravel() for places in ((0, 10, 40, 45), (100, 30, 60, 50)))
    rows = np.arange(len(start))
    build.add_columns("events", {
        "name": names[random.integers(0, 60, len(start))], "start_ns": start, "end_ns": end,
        "thread": np.where(rows < len(start) // 2, threads[0], threads[1]).astype(np.int32),
        "inputs": inputs[random.integers(0, 40, len(start))], "sequence": np.where(rows % 2, rows, -1)})
    return build.finish(end_ns=int(end[-1]), epoch_ns=10**18, metadata={"record_shapes": True})

def resident():
    with open("/proc/self/status") as file:
        return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")}

class meter:
    def __enter__(self):
        self.start, self.wall = time.process_time(), time.perf_counter()
        return self
    def __exit__(self, *_):
        self.cpu, self.wall = time.process_time() - self.start, time.perf_counter() - self.wall

def tell(*numbers):
    print(*(f"{number:.6f}" for number in numbers))
"""

WRITE = """
from mtprof import Recording
recording = Recording(made(int(sys.argv[2])))
with meter() as took:
    (recording.save if sys.argv[1].endswith(".mtp") else recording.export_chrome_trace)(sys.argv[1])
tell(took.cpu, took.wall, 0)
"""
READ = """
import mtprof.loading
import pyarrow.ipc
with meter() as took:
    recording = mtprof.load(sys.argv[1])
tell(took.cpu, took.wall, resident()["VmHWM"])
"""
AVERAGES = """
import mtprof.loading
import pyarrow.ipc
recording = mtprof.load(sys.argv[1])
with meter() as took:
    recording.table()
used = sum(column.nbytes for column in recording.trace.events._made.values()) / 2**20
tell(took.cpu, took.wall, resident()["VmHWM"], used)
"""


def child(program: str, *arguments: Any) -> list[float]:
    """Processor seconds, seconds, and what else the program tells."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", COMMON + program, *map(str, arguments)], capture_output=True,
                          text=True, check=True, env=environment)
    return [float(word) for word in done.stdout.split()]


def line(what: str, found: float, unit: str, aim: float) -> str:
    """One row: what, how much, and what was aimed at."""
    return f"{what:<52} {found:>9.2f} {unit:<4} aim <= {aim:g} {'ok' if found <= aim else 'MISSED'}"


def run() -> None:
    """Print the costs. Times are of the processor, as other work on the machine disturbs those of the clock."""
    with tempfile.TemporaryDirectory() as folder:
        chrome, own = os.path.join(folder, "trace.json"), os.path.join(folder, "trace.mtp")
        print(f"\nChrome trace of {KINETO_EVENTS:,} events with shapes")
        print(line("write", child(WRITE, chrome, KINETO_EVENTS)[0], "s", 1.5))
        cpu, _, peak = min(child(READ, chrome) for _ in range(2))
        print(f"{os.path.getsize(chrome) / 2**20:.0f} MB")
        print(line("read", cpu, "s", 3))
        print(line("read, largest memory of the process", peak, "MB", 300))
        os.unlink(chrome)
        print(f"\nown file of {OWN_EVENTS:,} events")
        print(line("write, per event", child(WRITE, own, OWN_EVENTS)[0] / OWN_EVENTS * 1e6, "us", 0.1))
        print(f"{os.path.getsize(own) / 2**20:.0f} MB")
        print(line("open", min(child(READ, own) for _ in range(3))[0] * 1e3, "ms", 50))
        cpu, _, peak, used = min(child(AVERAGES, own) for _ in range(2))
        print(line("averages", cpu, "s", 1))
        empty = child(READ, own)[2]
        print(line("averages, memory over that of the columns in use", (peak - empty) / used, "x", 1.5))


if __name__ == "__main__":
    run()
