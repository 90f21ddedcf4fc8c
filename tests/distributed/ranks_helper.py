"""Programs in several real processes, on this runtime and, where it is installed, on PyTorch.

Every process that is started here has MARK in its environment. What is still there when its time is up is killed by
its id, and `leftovers` finds what outlived its test.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS, SCRIPTS, SEVERAL = HERE / "programs", HERE / "scripts", HERE / "several.py"
FIGURES = HERE / "figures"  # what the programs said on PyTorch, by how many ranks there were
TOGETHER = [*sorted(PROGRAMS.glob("both_*.py")), *sorted(SCRIPTS.glob("*.py"))]
SOURCES = str(HERE.parents[1] / "src")
SECONDS = 300  # far more than anything here takes: a test that hangs ends
MARK = f"MINDTORCH_TEST={uuid.uuid4().hex}"


def environment(results: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PMI_", "OMPI_", "MPI_", "RANK", "WORLD_SIZE", "LOCAL_RANK"))}
    name, _, value = MARK.partition("=")
    return {**kept, name: value, "PYTHONPATH": SOURCES, "RESULTS": str(results), "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1"}


def leftovers() -> list[int]:
    """Processes that tests of this run have started and that are still there."""
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with contextlib.suppress(OSError):
            if entry.isdigit() and int(entry) != os.getpid() and MARK.encode() in Path(
                    f"/proc/{entry}/environ").read_bytes():
                found.append(int(entry))
    return found


def kill_leftovers() -> list[int]:
    found = leftovers()
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


def run(command: list[str], results: Path, seconds: float = SECONDS,
        **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; all that it started is gone if it takes too long."""
    try:
        return subprocess.run(command, env={**environment(results), **variables}, capture_output=True, text=True,
                              timeout=seconds, cwd=results)
    except subprocess.TimeoutExpired:
        kill_leftovers()
        raise


def torchrun(ranks: int, *program: str, results: Path, options: tuple[str, ...] = (), seconds: float = SECONDS,
             **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program on this runtime, with its launcher."""
    command = [sys.executable, "-m", "mindtorch_v2.distributed.run", "--nproc-per-node", str(ranks), *options, *program]
    return run(command, results, seconds, **variables)


def mtprof(*arguments: str, results: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return run([sys.executable, "-m", "mtprof", *arguments], results, **variables)


def free_ports(count: int) -> list[str]:
    """Ports of the loopback that nobody has."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]


def on_pytorch(ranks: int, *program: str, results: Path, **variables: str) -> None:
    """Run a program on PyTorch with its gloo."""
    shared = {**environment(results), "PYTHONPATH": "", "MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo",
              "MASTER_PORT": free_ports(1)[0], "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
              "ON_PYTORCH": "1", **variables}
    started = [subprocess.Popen([sys.executable, *program], text=True, stderr=subprocess.PIPE, cwd=results,
                                env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)]
    try:
        for process in started:
            _, errors = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, errors
    finally:
        for process in started:
            process.kill()
            process.communicate()


def results_of(folder: Path, ranks: int) -> list[dict]:
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
