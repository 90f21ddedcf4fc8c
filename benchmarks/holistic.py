"""Loading and summarising a Kineto trace of a million events, beside Holistic Trace Analysis on the same file.

HTA pins old packages, so it lives in an environment of its own: `HTA_PYTHON=/path/to/its/python python -m benchmarks
holistic`. Each side runs in a process; what is compared is CPU time and peak memory, which a busy machine changes
least.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

EVENTS = 1_000_000
_USAGE = "import json, resource\nused = resource.getrusage(resource.RUSAGE_SELF)\n" \
         "print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6]))\n"
OURS = "import sys, mtprof\nfrom mtprof.analysis import Analysis\nfrom mtprof.cli import summary\n" \
       "summary.as_dict(Analysis(mtprof.load(sys.argv[1])), 10, [])\n" + _USAGE
THEIRS = "import os, sys\nfrom hta.trace_analysis import TraceAnalysis\n" \
         "found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]))\n" \
         "found.get_temporal_breakdown(visualize=False)\n" + _USAGE


def run() -> None:
    """Print both sides and their ratio."""
    python = os.environ.get("HTA_PYTHON")
    if python is None:
        print("holistic: skipped; HTA_PYTHON should name a Python with HolisticTraceAnalysis")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        write_trace(path, EVENTS)
        ours, theirs = _measure(sys.executable, OURS, path), _measure(python, THEIRS, path)
    print(f"holistic: load and summarise {EVENTS:,} events: {ours[0]:.1f} s of CPU time and {ours[1]:.2f} GB, "
          f"HTA {theirs[0]:.1f} s and {theirs[1]:.2f} GB: {ours[0] / theirs[0]:.2f} and {ours[1] / theirs[1]:.2f}")


def _measure(python: str, program: str, path: Path) -> tuple[float, float]:
    done = subprocess.run([python, "-W", "ignore", "-c", program, str(path)], capture_output=True, text=True,
                          check=True)
    seconds, gigabytes = json.loads(done.stdout.splitlines()[-1])
    return seconds, gigabytes


def write_trace(path: Path, events: int) -> None:
    """Steps of ops within ops, each with a launch and a kernel on one of two streams, as Kineto lays them out."""
    choose = random.Random(1)
    names = [f"aten::op{number}" for number in range(60)]
    kernels = [*(f"void kernel_{number}<float>(float*, int)" for number in range(80)),
               "ncclDevKernel_AllReduce_Sum_f32"]
    time, correlation, step, count = 1000, 1, 0, 0
    with open(path, "w") as file:
        file.write('{\n"schemaVersion": 1,\n"record_shapes": 1,\n"distributedInfo": {"rank": 0, "world_size": 1},\n'
                   '"baseTimeNanoseconds": 1790857026000000000,\n"traceEvents": [\n')
        file.write(json.dumps({"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 0,
                               "args": {"name": "python"}}))

        def add(category: str, name: str, thread: tuple[int, int], start: int, length: int, **args: object) -> None:
            file.write(",\n" + json.dumps({"ph": "X", "cat": category, "name": name, "pid": thread[0], "tid": thread[1],
                                           "ts": start, "dur": length, "args": args}))

        while count < events:
            began, free = time, {7: time, 20: time}
            for _ in range(2000):
                length = choose.randint(8, 25)
                add("cpu_op", choose.choice(names), (100, 100), time, length,
                    **{"External id": correlation, "Input Dims": [[64, 64], [64, 64]], "Input type": ["float",
                                                                                                      "float"]})
                add("cpu_op", choose.choice(names), (100, 100), time + 1, length - 2, **{"External id": correlation})
                add("cuda_runtime", "cudaLaunchKernel", (100, 100), time + 2, length - 5, correlation=correlation)
                kernel = choose.choice(kernels)
                stream = 20 if "nccl" in kernel else 7
                start, busy = max(free[stream], time + 5), choose.randint(3, 30)
                add("kernel", kernel, (0, stream), start, busy, device=0, stream=stream, correlation=correlation)
                free[stream] = start + busy
                time += length + choose.randint(1, 3)
                correlation += 1
                count += 4
            time = max(time, *free.values())
            add("user_annotation", f"ProfilerStep#{step}", (100, 100), began, time - began - 1)
            time, step, count = time + 5, step + 1, count + 1
        file.write('\n],\n"traceName": "rank0.json"\n}\n')
