"""Programs in several real processes, on this runtime and, where it is installed, on PyTorch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
SOURCES = str(Path(__file__).parents[2] / "src")
SECONDS = 180


def environment(results: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PMI_", "OMPI_", "MPI_", "RANK", "WORLD_SIZE", "LOCAL_RANK"))}
    return {**kept, "PYTHONPATH": SOURCES, "RESULTS": str(results), "OMP_NUM_THREADS": "1"}


def torchrun(ranks: int, *program: str, results: Path, options: tuple[str, ...] = (),
             **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program on this runtime, with its launcher."""
    command = [sys.executable, "-m", "mindtorch_v2.distributed.run", "--nproc-per-node", str(ranks), *options, *program]
    return subprocess.run(command, env={**environment(results), **variables}, capture_output=True, text=True,
                          timeout=SECONDS)


def on_pytorch(ranks: int, *program: str, results: Path) -> None:
    """Run a program on PyTorch with its gloo."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {**environment(results), "PYTHONPATH": "", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
              "WORLD_SIZE": str(ranks)}
    started = [subprocess.Popen([sys.executable, *program], text=True, stderr=subprocess.PIPE,
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
