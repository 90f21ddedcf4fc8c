"""What the launchers of ranks (`mpiexec`, `srun`) say about this process in its environment."""

from __future__ import annotations

import os

__all__ = ["launched_rank", "launched_size", "local_rank", "local_size", "node"]

# Open MPI, MPICH and Intel MPI (PMI), PMIx, Slurm's srun. `mpiexec` may run under srun, or may start its helpers with
# srun: then Slurm's numbers are the helpers', so they come last.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_LOCAL_SIZES = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")


def _in_step() -> bool:
    """Whether srun started this process. A batch script has most of Slurm's variables too, but is a single process."""
    return "SLURM_STEP_ID" in os.environ


def _number(names: tuple[str, ...]) -> int | None:
    for name in names:
        text = os.environ.get(name, "")
        if text.isdecimal() and (_in_step() or not name.startswith("SLURM_")):
            return int(text)
    return None


def launched_rank() -> int | None:
    """This process's rank, if a launcher of MPI started it."""
    return _number(_RANKS)


def launched_size() -> int | None:
    """How many processes the launcher started."""
    return _number(_SIZES)


def local_rank() -> int | None:
    """This process's number on its machine."""
    return _number(_LOCAL_RANKS)


def local_size() -> int | None:
    """How many processes the launcher started on this machine."""
    return _tasks_here() if _is_task() else _number(_LOCAL_SIZES)


def node() -> tuple[int, int]:
    """The number of this machine, and how many there are.

    Only Slurm states it. For other launchers it is calculated, which is right if they fill one machine after the other.
    """
    if _is_task():
        return int(os.environ.get("SLURM_NODEID", "0")), int(os.environ.get("SLURM_STEP_NUM_NODES", "1"))
    here, beside = local_rank(), local_size()
    if here is None or not beside:
        return 0, 1
    return ((launched_rank() or 0) - here) // beside, -(-(launched_size() or 1) // beside)


def _is_task() -> bool:
    """Whether this very process is a task of Slurm, with no `mpiexec` in between."""
    return _in_step() and _number(_LOCAL_SIZES) is None


def _tasks_here() -> int | None:
    """Slurm's entry for this node in its list of all nodes, such as 2(x3),1."""
    node = int(os.environ.get("SLURM_NODEID", "0"))
    for part in os.environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        tasks, _, times = part.rstrip(")").partition("(x")
        if not tasks.isdecimal():
            return None
        node -= int(times or 1)
        if node < 0:
            return int(tasks)
    return None
