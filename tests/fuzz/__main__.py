"""`python -m tests.fuzz`: run the targets in processes of their own; the exit code is 0 if nothing was found."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

from .targets import TARGETS
from .worker import try_one

ROOT = pathlib.Path(__file__).resolve().parents[2]
FINDINGS = pathlib.Path(__file__).parent / "findings"


def _run(name: str, seconds: float, seed: int) -> int:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1",
                   "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    if name == "schema":
        command = [sys.executable, "-m", f"{__package__}.schema", str(seconds), str(seed)]
    else:
        command = [sys.executable, "-m", f"{__package__}.worker", name, str(seconds), str(seed), str(FINDINGS)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)
    try:
        said, _ = process.communicate(timeout=seconds * 3 + 1200)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        said += "\nit did not end; the input is in findings/"
    print(f"-- {name}, seed {seed}\n{said.strip()[-3000:]}", flush=True)
    if process.returncode < 0:
        print(f"{name}: the process was ended by {signal.Signals(-process.returncode).name}; the input is in "
              f"{FINDINGS / f'{name}-current'}")
    return process.returncode


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzzes the readers of files.")
    parser.add_argument("-t", "--target", choices=(*TARGETS, "schema"), action="append")
    parser.add_argument("--seconds", type=float, default=60, help="how long each target runs")
    parser.add_argument("--quick", action="store_true", help="a number of inputs instead, the same each time")
    parser.add_argument("--seed", type=int, help="what chance begins with")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="how many targets at a time")
    parser.add_argument("--replay", type=pathlib.Path, help="try one input and say what happens")
    chosen = parser.parse_args()
    if chosen.replay is not None:
        signal.signal(signal.SIGPROF, signal.default_int_handler)
        target = TARGETS[(chosen.target or ["checkpoint"])[0]]
        wrong = try_one(target, chosen.replay.read_bytes())
        print(wrong or "nothing is wrong")
        return 1 if wrong else 0
    FINDINGS.mkdir(exist_ok=True)
    seconds = 0 if chosen.quick else chosen.seconds
    seed = chosen.seed if chosen.seed is not None else 1 if chosen.quick else int(time.time())
    names = chosen.target or [*TARGETS, "schema"]
    with concurrent.futures.ThreadPoolExecutor(chosen.j) as pool:
        codes = list(pool.map(lambda name: _run(name, seconds, seed), names))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"-- {used.ru_utime + used.ru_stime:.0f} s of processor")
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
