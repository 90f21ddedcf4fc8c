"""Trains the programs of examples/ in a process of its own and writes what came out as JSON.

    python example_runner.py ours|theirs STEPS OUTPUT program...

`ours` puts this runtime in PyTorch's place. A process of its own, because `torch` can mean only one thing in it. Two
steps of each program, if there are as many, are profiled.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from row_agreement import events_of

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py") if not path.stem.startswith("demo"))
PROFILED = (3, 4)


def start(which: str, steps: int, output: Path, programs: list[str]) -> subprocess.Popen[str]:
    """Start this file as a program."""
    # One thread each: products this small do not gain from more, and two runs side by side would fight for the cores.
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, __file__, which, str(steps), str(output), *programs], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str], output: Path, timeout: float = 300) -> dict[str, Any]:
    """Wait for it and read what it wrote."""
    text, _ = process.communicate(timeout=timeout)
    assert process.returncode == 0, text
    return json.loads(output.read_text())


def run(torch: Any, program: str, steps: int) -> dict[str, Any]:
    """Losses of a program, and the events of the steps that are profiled."""
    example = importlib.import_module(program)
    prof = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True)

    def on_step(step: int, loss: float) -> None:
        if step == PROFILED[0] - 1:
            prof.start()
        elif step == PROFILED[-1]:
            prof.stop()

    losses = example.train(steps, seed=0, on_step=on_step)
    return {"losses": losses, "events": events_of(prof) if steps > PROFILED[-1] else []}


def main(which: str, steps: str, output: str, *programs: str) -> None:
    """Run the programs one after the other."""
    if which == "ours":
        importlib.import_module("mindtorch_v2.torch_alias").enable(force=True)
    torch = importlib.import_module("torch")
    sys.path.insert(0, str(EXAMPLES))
    Path(output).write_text(json.dumps({program: run(torch, program, int(steps)) for program in programs}))


if __name__ == "__main__":
    main(*sys.argv[1:])
