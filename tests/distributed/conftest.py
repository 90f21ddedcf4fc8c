"""Programs on both runtimes, all of them in one start of the processes; and no process that outlives its test."""

from __future__ import annotations

import pytest
from ranks_helper import PROGRAMS, SCRIPTS, SEVERAL, free_ports, kill_leftovers, on_pytorch, torchrun

TOGETHER = [*sorted(PROGRAMS.glob("both_*.py")), *sorted(SCRIPTS.glob("*.py"))]


@pytest.fixture(scope="session")
def run_all(tmp_path_factory):
    """Run all programs at so many ranks, once; the folder of the results."""

    done: dict = {}

    def run(runtime: str, ranks: int):
        if (runtime, ranks) not in done:
            done[runtime, ranks] = "it has failed before"
            done[runtime, ranks] = start(runtime, ranks)
        if isinstance(done[runtime, ranks], str):
            pytest.fail(f"the programs on {runtime} at {ranks} ranks: {done[runtime, ranks]}")
        return done[runtime, ranks]

    def start(runtime: str, ranks: int):
        folder = tmp_path_factory.mktemp(f"{runtime}-{ranks}")
        program = [str(SEVERAL), *map(str, TOGETHER)]
        ports = " ".join(free_ports(len(TOGETHER)))
        if runtime == "torch":
            on_pytorch(ranks, *program, results=folder, PORTS=ports)
        else:
            ended = torchrun(ranks, *program, results=folder, PORTS=ports)
            assert ended.returncode == 0, ended.stderr
        return folder

    return run


@pytest.fixture
def both(run_all):
    """The folders of a program's results, ours and PyTorch's."""
    pytest.importorskip("mpi4py")
    pytest.importorskip("torch", reason="real PyTorch is not installed")
    return lambda name, ranks: (run_all("mindtorch_v2", ranks) / name, run_all("torch", ranks) / name)


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    left = kill_leftovers()
    assert not left, f"processes {left} outlived the test"
