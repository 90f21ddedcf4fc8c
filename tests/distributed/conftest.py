"""Programs on this runtime, all of them in one start of the processes; and no process that outlives its test."""

from __future__ import annotations

import pytest
from ranks_helper import FIGURES, SEVERAL, TOGETHER, free_ports, kill_leftovers, torchrun


@pytest.fixture(scope="session")
def run_all(tmp_path_factory):
    """Run all programs at so many ranks, once; the folder of the results."""
    done: dict = {}

    def run(ranks: int):
        if ranks not in done:
            done[ranks] = None
            folder = tmp_path_factory.mktemp(f"ranks-{ranks}")
            ended = torchrun(ranks, str(SEVERAL), *map(str, TOGETHER), results=folder,
                             PORTS=" ".join(free_ports(len(TOGETHER))))
            assert ended.returncode == 0, ended.stderr
            done[ranks] = folder
        if done[ranks] is None:
            pytest.fail(f"the programs at {ranks} ranks have failed before")
        return done[ranks]

    return run


@pytest.fixture
def both(run_all):
    """The folders of a program's results: ours, and what PyTorch's gloo gave (`renew_figures.py`)."""
    pytest.importorskip("mpi4py")
    return lambda name, ranks: (run_all(ranks) / name, FIGURES / str(ranks) / name)


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    left = kill_leftovers()
    assert not left, f"processes {left} outlived the test"
