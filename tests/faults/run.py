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


IDLE_SECONDS = 60  # a case that uses no processor for so long waits for something that does not come
POLL_SECONDS = 0.05
POLLS = 20  # between two looks at what it uses


@dataclass(frozen=True)
class Outcome:
    """How a case ended: "held", "failed", "crashed", "hung" or "skipped", and what was said last."""

    case: Case
    recorder: str
    kind: str
    seconds: float  # of processor
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
    with tempfile.TemporaryDirectory(prefix="fault-") as directory, tempfile.TemporaryFile() as output:
        process = subprocess.Popen([sys.executable, "-m", f"{__package__}.child", case.name, directory, recorder],
                                   cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code, used = _wait(process, case.seconds)
        finally:
            _end_group(process.pid)
            process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    return Outcome(case, recorder, _kind(code), used, said or f"exit code {code}")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> tuple[int | None, float]:
    """Its exit code and the processor time of it and its children; no code if they use more than a case may, or none.

    Not by the clock on the wall: a busy machine is no fault.
    """
    used, since = 0.0, time.monotonic()
    while used < seconds and time.monotonic() - since < IDLE_SECONDS:
        for _ in range(POLLS):
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode, usage.ru_utime + usage.ru_stime
            time.sleep(POLL_SECONDS)
        now = _processor_seconds(process.pid)
        if now > used:
            used, since = now, time.monotonic()
    return None, used


def _processor_seconds(leader: int) -> float:
    """What the processes of a group have used so far, those included that have ended and were waited for."""
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            facts = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(facts[2]) == leader:
            ticks += sum(map(int, facts[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


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
