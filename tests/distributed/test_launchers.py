"""Launchers: what they say about a process, and where `torchrun` puts what ranks write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from ranks_helper import SCRIPTS, mtprof, run, torchrun
from test_scripts import compare

from mtprof.launch import launchers

pytest.importorskip("mpi4py")


def variables(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


# What processes found in their environment, on a machine with Slurm 22.05, MPICH 5 and Open MPI 5.
TASK = "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=5 SLURM_STEP_NUM_NODES=3 SLURM_STEP_TASKS_PER_NODE=2(x2),1 "
SAID = {
    "task of srun": (TASK + "SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_NTASKS=5", (3, 5, 1, 2, (1, 3))),
    "task on the last node": (TASK + "SLURM_PROCID=4 SLURM_LOCALID=0 SLURM_NODEID=2 PMI_RANK=4 PMI_SIZE=5",
                              (4, 5, 0, 1, (2, 3))),
    "batch script": ("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=0", (None, None, None, None, (0, 1))),
    "mpiexec in a task": (TASK + "SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NODEID=1 PMI_RANK=3 PMI_SIZE=4 "
                                 "MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", (3, 4, 1, 2, (1, 2))),
    "Open MPI whose helpers srun started": (
        TASK + "SLURM_PROCID=0 SLURM_LOCALID=0 PMI_RANK=0 PMI_SIZE=2 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 "
               "OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=3", (2, 3, 2, 3, (0, 1))),
    "nothing": ("", (None, None, None, None, (0, 1))),
}


@pytest.mark.parametrize("case", SAID)
def test_what_launchers_say(monkeypatch, case):
    text, expected = SAID[case]
    for name in list(os.environ):
        if name.startswith(("SLURM_", "PMI", "OMPI_", "MPI_")):
            monkeypatch.delenv(name)
    for name, value in variables(text).items():
        monkeypatch.setenv(name, value)
    assert (launchers.launched_rank(), launchers.launched_size(), launchers.local_rank(), launchers.local_size(),
            launchers.node()) == expected


LONELY = """
import torch.distributed as dist
dist.init_process_group("gloo"{more})
print(dist.get_world_size())
"""


def test_a_launcher_that_mpi_does_not_belong_to_is_an_error(tmp_path):
    """As srun with another --mpi: each process would be a group of its own, and train alone."""
    task = variables(TASK + "SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1")
    (tmp_path / "program.py").write_text(LONELY.format(more=""))
    ended = run([sys.executable, "-m", "mindtorch_v2", "program.py"], tmp_path, **task)
    assert "5 processes were started together, but MPI sees this process alone" in ended.stderr
    assert "--mpi=pmi2" in ended.stderr
    (tmp_path / "program.py").write_text(LONELY.format(more=", world_size=1, rank=0"))
    assert run([sys.executable, "-m", "mindtorch_v2", "program.py"], tmp_path, **task).stdout == "1\n"


SPEAKING = """
import os, sys
print("out", os.environ["RANK"], os.environ["ROLE_NAME"], sys.argv[1:])
print("err", os.environ["RANK"], file=sys.stderr)
"""


def logs(folder) -> dict[str, str]:
    return {"/".join(path.parts[-2:]): path.read_text() for path in folder.glob("mine_*/attempt_0/*/*.log")}


def test_what_ranks_write_goes_to_files(tmp_path):
    (tmp_path / "program.py").write_text(SPEAKING)
    ended = torchrun(2, "program.py", results=tmp_path,
                     options=("--log-dir", "logs", "--redirects", "3", "--role", "r", "--rdzv-id", "mine"))
    assert (ended.stdout, ended.stderr) == ("", "")
    assert logs(tmp_path / "logs") == {"0/stdout.log": "out 0 r []\n", "0/stderr.log": "err 0\n",
                                       "1/stdout.log": "out 1 r []\n", "1/stderr.log": "err 1\n"}


def test_what_ranks_write_goes_to_files_and_to_the_terminal(tmp_path):
    (tmp_path / "program.py").write_text(SPEAKING)
    ended = torchrun(2, "program.py", results=tmp_path, options=(
        "--log-dir", "logs", "--tee", "0:3", "-r", "1:1", "--local-ranks-filter", "0", "--rdzv-id", "mine"))
    assert (ended.stdout, ended.stderr) == ("[default0]:out 0 default []\n", "[default0]:err 0\n")
    assert logs(tmp_path / "logs") == {"0/stdout.log": "out 0 default []\n", "0/stderr.log": "err 0\n",
                                       "1/stdout.log": "out 1 default []\n"}
    ended = torchrun(2, "program.py", results=tmp_path, options=("--tee", "7"))
    assert "--tee should be 0, 1, 2 or 3" in ended.stderr


def test_programs_that_are_not_python_have_pytorchs_variables(tmp_path):
    ended = torchrun(2, "sh", "-c", "echo $RANK of $WORLD_SIZE", results=tmp_path, options=("--no-python",))
    assert sorted(ended.stdout.splitlines()) == ["0 of 2", "1 of 2"]


@pytest.mark.parametrize(("options", "told"), [([], "['--local-rank={}', '--x']"), (["--use-env"], "['--x']")])
def test_the_older_launcher(tmp_path, options, told):
    (tmp_path / "program.py").write_text(SPEAKING)
    ended = run([sys.executable, "-m", "mindtorch_v2", "-m", "torch.distributed.launch", *options, "--nproc_per_node=2",
                 "program.py", "--x"], tmp_path)
    assert sorted(ended.stdout.splitlines()) == [f"out {rank} default {told.format(rank)}" for rank in range(2)]


def test_several_machines_are_refused(tmp_path):
    ended = torchrun(2, "program.py", results=tmp_path, options=("--nnodes", "2", "--node-rank", "0"))
    assert ended.returncode == 1
    assert "mpiexec and a list of hosts, or with srun" in ended.stderr


def test_mtprof_run_under_another_launcher_leaves_a_file_of_each_rank(tmp_path):
    (tmp_path / "program.py").write_text("import torch.distributed as d\nd.init_process_group('gloo'); d.barrier()")
    ended = torchrun(2, sys.executable, "-m", "mtprof", "run", "program.py", results=tmp_path, options=("--no-python",))
    assert ended.returncode == 0, ended.stderr
    assert sorted(os.listdir(tmp_path / "program.ranks")) == ["rank0.mtp", "rank1.mtp"]
    assert mtprof("ranks", "program.ranks", results=tmp_path).stdout.startswith("2 ranks")


@pytest.mark.parametrize("ranks", [2, 4])
def test_srun_runs_the_scripts(both, tmp_path, ranks):
    """With a Slurm that this machine can use; --mpi=pmi2 is for MPICH."""
    srun = shutil.which("srun")
    if srun is None or subprocess.run([srun, "--mpi=pmi2", "--immediate=5", "-n", str(ranks), "true"],
                                      capture_output=True, timeout=60).returncode:
        pytest.skip(f"no Slurm that runs {ranks} tasks")
    theirs = both("minimal", ranks)[1]
    ended = run([srun, "--mpi=pmi2", "-n", str(ranks), "-o", "%t.txt", sys.executable, "-m",
                 "mindtorch_v2.distributed.worker", str(SCRIPTS / "minimal.py")], tmp_path)
    assert ended.returncode == 0, ended.stderr
    for rank in range(ranks):
        compare((tmp_path / f"{rank}.txt").read_text(), (theirs / f"{rank}.txt").read_text(), rank)
