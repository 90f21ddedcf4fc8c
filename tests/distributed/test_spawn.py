"""`torch.multiprocessing.spawn` in programs that use `torch.distributed`: MPI's launcher starts the ranks."""

from __future__ import annotations

import sys

import pytest
from ranks_helper import PROGRAMS, run

pytest.importorskip("mpi4py")

TRAINED = ["0 8.0", "1 8.0"]  # eight weights, and for each the mean of 0 and 2: two rows of the rank's number


@pytest.mark.parametrize(("trouble", "said"), [
    ("none", TRAINED),
    ("apart", TRAINED),
    ("raises", ["ProcessRaisedException 1  ValueError: no data for this rank"]),
    ("dies", ["ProcessExitedException 1 SIGKILL process 1 terminated with signal SIGKILL"]),
    ("queue", ["[0, 1]"]),  # a queue cannot go to MPI's launcher, so these processes are Python's own
])
def test_spawn_starts_ranks_and_says_which_one_failed(tmp_path, trouble, said):
    ended = run([sys.executable, "-m", "mindtorch_v2", str(PROGRAMS / "spawned.py"), trouble], tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == said
