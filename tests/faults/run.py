"""Runs cases in processes of their own and says how each ended."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from .child import SKIPPED
from .registry import Case

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """How a case ended: "held", "failed", "crashed", "hung" or "skipped", and what was said last."""

    case: Case
    recorder: str
    kind: str
    seconds: float
    said: str

    @property
    def name(self) -> str:
        return self.case.name if self.recorder == "any" else f"{self.case.name}[{self.recorder}]"


def run(case: Case, recorder: str) -> Outcome:
    """Run a case once."""
    environment = {**os.environ, **dict(case.environment), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
                   "PYTHONFAULTHANDLER": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("MINDTORCH_NATIVE", None)
    if recorder == "python":
        environment["MINDTORCH_NATIVE"] = "0"
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fault-") as directory, tempfile.TemporaryFile() as output:
        process = subprocess.Popen([sys.executable, "-m", f"{__package__}.child", case.name, directory, recorder],
                                   cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code: int | None = process.wait(case.seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end_group(process.pid)
            process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    return Outcome(case, recorder, _kind(code), time.monotonic() - began, said or f"exit code {code}")


def _end_group(leader: int) -> None:
    """End what the process has left behind: it is the leader of a group of its own."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def _kind(code: int | None) -> str:
    if code is None:
        return "hung"
    if code == SKIPPED:
        return "skipped"
    if code == 0:
        return "held"
    return "crashed" if code < 0 or code > 128 else "failed"
