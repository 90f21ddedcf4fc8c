"""What happens when something goes wrong around the ranks: files, launchers, clocks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ranks_helper import PROGRAMS, environment, mtprof, results_of, run, torchrun

pytest.importorskip("mpi4py")

DYING = """
import os, signal
import torch, torch.distributed as dist
dist.init_process_group("gloo")
for number in range(3):
    dist.all_reduce(torch.ones(10))
if dist.get_rank() == 1:
    import time
    time.sleep(1.5)  # a streamed recording is written every half second
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(10))
"""


def test_recordings_are_kept_when_a_rank_is_killed(tmp_path):
    """The others name it and leave complete recordings; the killed one leaves what was written."""
    import mtprof as library

    (tmp_path / "dying.py").write_text(DYING)
    ended = mtprof("run", "--ranks", "3", "--stream", "-o", "out", "dying.py", results=tmp_path)
    assert ended.returncode != 0
    assert "rank 1 (process" in ended.stderr
    assert "was killed by SIGKILL" in ended.stderr
    assert "3 of 3 ranks wrote a recording" in ended.stderr
    ranks = library.load(tmp_path / "out")
    assert len(ranks) == 3
    assert [problem.rpartition("/")[2] for problem in ranks.problems] == [
        "rank1.mtp is cut short; its last rows are missing"]
    assert {(row.number, row.ranks) for row in ranks.waits()} == {(0, 3), (1, 3), (2, 3), (3, 2)}


BEFORE = """
import os, signal, sys, time
import torch, torch.distributed as dist
from datetime import timedelta
if os.environ["RANK"] == "1":
    {happens}
dist.init_process_group("gloo", timeout=timedelta(seconds={seconds}))
"""


@pytest.mark.parametrize(("happens", "seconds", "said"), [
    ("raise KeyError('mine')", 600, "rank 1 has ended and never came through init_process_group"),
    ("os.kill(os.getpid(), signal.SIGKILL)", 600, "rank 1 has ended and never came through init_process_group"),
    ("signal.pause()", 2, "; ranks that have not come: 1"),
])
def test_a_rank_that_never_comes_ends_the_others(tmp_path, happens, seconds, said):
    """MPI would wait for it forever, before anything could raise an error."""
    (tmp_path / "program.py").write_text(BEFORE.format(happens=happens, seconds=seconds))
    ended = torchrun(3, str(tmp_path / "program.py"), results=tmp_path)
    assert ended.returncode != 0
    assert ended.stderr.count(said) == 2, ended.stderr


ALIGNED = """
import json, os, sys
import torch, torch.distributed as dist
from time import perf_counter_ns
from mindtorch_v2._dispatch.observer import HOOK
rank = int(os.environ["RANK"])
HOOK["clock"] = lambda: perf_counter_ns() + 40_000_000 * rank
dist.init_process_group("gloo")
from mindtorch_v2.distributed._groups import WORLD
found = WORLD.alignment
json.dump({"off": found.offset_ns + 40_000_000 * rank, "error": found.error_ns, "run": found.run},
          open(os.path.join(os.environ["RESULTS"], f"{rank}.json"), "w"))
dist.barrier()
"""


def test_clocks_are_aligned_within_the_bound_that_is_told(tmp_path):
    (tmp_path / "aligned.py").write_text(ALIGNED)
    ended = torchrun(4, str(tmp_path / "aligned.py"), results=tmp_path)
    assert ended.returncode == 0, ended.stderr
    found = results_of(tmp_path, 4)
    assert found[0]["error"] == 0
    for one in found:
        assert abs(one["off"]) <= one["error"]
    assert len({one["run"] for one in found}) == 1


PLAIN = """
import sys, torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
sys.stdout.write(f"rank {dist.get_rank()}\\n")  # in one piece: print writes several
dist.destroy_process_group()
"""


def test_each_rank_leaves_a_file_of_its_own(tmp_path):
    import mtprof as library

    (tmp_path / "plain.py").write_text(PLAIN)
    ended = mtprof("run", "--ranks", "2", "plain.py", results=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.split("\n")) == ["", "rank 0", "rank 1"]
    assert sorted(os.listdir(tmp_path / "plain.ranks")) == ["rank0.mtp", "rank1.mtp", "report.html"]
    ranks = library.load(tmp_path / "plain.ranks")
    assert (len(ranks), ranks.problems) == (2, [])
    clock = ranks.recording(1).trace.metadata["rank_clock"]
    assert (clock["reference_rank"], clock["error_ns"] > 0) == (0, True)
    assert ranks.recording(1).trace.metadata["distributedInfo"]["world_size"] == 2
    again = mtprof("run", "--ranks", "2", "plain.py", results=tmp_path)
    assert "--force" in again.stderr
    assert again.returncode != 0


def fake_launcher(tmp_path, text: str, code: int):
    """An mpiexec that refuses."""
    path = tmp_path / "mpiexec"
    path.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && echo 'HYDRA build details' && exit 0\n"
                    f"echo '{text}' >&2\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_a_launcher_with_too_few_slots(tmp_path):
    launcher = fake_launcher(tmp_path, "There are not enough slots available in the system", 1)
    ended = torchrun(64, "nothing.py", results=tmp_path, options=("--mpiexec", launcher))
    assert ended.returncode == 1
    assert "not enough slots" in ended.stderr
    assert "torchrun: mpiexec ended with code 1 before it started a process" in ended.stderr
    assert "slots for 64 processes" in ended.stderr


def test_a_launcher_that_is_not_there(tmp_path):
    ended = torchrun(2, "nothing.py", results=tmp_path, options=("--mpiexec", str(tmp_path / "nowhere")))
    assert ended.returncode != 0
    assert "cannot be run" in ended.stderr
    bare = environment(tmp_path) | {"PATH": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", "import sys; sys.executable = '/nowhere/python'\n"
                            "from mindtorch_v2.distributed.run import main; main(['x.py'])"],
                           env=bare, capture_output=True, text=True, timeout=100)
    assert "no mpiexec found" in ended.stderr


def test_fewer_processes_than_the_program_expects(tmp_path):
    (tmp_path / "plain.py").write_text(PLAIN)
    ended = subprocess.run([sys.executable, "-m", "mindtorch_v2", "plain.py"], capture_output=True, text=True,
                           cwd=tmp_path, timeout=100, env=environment(tmp_path) | {"WORLD_SIZE": "8", "RANK": "0"})
    assert "world_size is 8, but no launcher of MPI started this process" in ended.stderr


def test_lines_of_ranks_come_whole_and_before_a_kill(tmp_path):
    ended = torchrun(2, str(PROGRAMS / "printing.py"), results=tmp_path)
    assert "killed by SIGKILL" in ended.stderr
    assert sorted(ended.stdout.splitlines()) == sorted(f"rank {rank} line {n}" for rank in range(2) for n in range(100))


def test_pytorchs_own_launch_command(tmp_path):
    (tmp_path / "plain.py").write_text(PLAIN)
    command = [sys.executable, "-m", "mindtorch_v2", "-m", "torch.distributed.run", "--standalone", "--nnodes=1",
               "--nproc_per_node=2", "plain.py"]
    ended = run(command, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.split("\n")) == ["", "rank 0", "rank 1"]
