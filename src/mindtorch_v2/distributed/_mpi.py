"""MPI, loaded when the first group is made, and what its launchers say about this process.

`mpi4py` finalizes MPI when Python ends, which waits for all ranks. A rank that ends by an exception would wait for
others that wait for it. So this module finalizes itself, and only where all ranks came to their end (`_peers.leave`).
"""

from __future__ import annotations

import importlib.util
import os
import threading
from functools import cache
from typing import Any

__all__ = ["LOCK", "installed", "launched_rank", "launched_size", "local_rank", "local_size", "mpi", "node"]

# One thread is in MPI at a time: reductions of 16-bit floats are Python functions that MPI calls, and a thread that
# holds MPI's own lock and wants Python's would meet one that holds Python's and wants MPI's.
LOCK = threading.RLock()

# What launchers put into the environment: Open MPI, MPICH and Intel MPI (PMI), PMIx, Slurm's srun. `mpiexec` may have
# been started by srun, or may start its helpers with it: then Slurm's numbers are the helpers', so they come last.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_LOCAL_SIZES = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")

_MISSING = ("torch.distributed needs MPI: pip install 'mindtorch-v2[distributed]' (mpi4py with MPICH), or install "
            "mpi4py "
            "for the MPI of your cluster")


def installed() -> bool:
    """Whether mpi4py can be imported; MPI itself is not loaded."""
    return importlib.util.find_spec("mpi4py") is not None


@cache
def mpi() -> Any:
    """The module `mpi4py.MPI`, initialized."""
    try:
        import mpi4py
    except ModuleNotFoundError as error:
        raise RuntimeError(_MISSING) from error
    mpi4py.rc.finalize = False
    mpi4py.rc.thread_level = "multiple"
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(f"mpi4py is installed, but it finds no MPI library ({error}): pip install mpich") from error
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise RuntimeError(f"{MPI.Get_library_version().splitlines()[0]} does not let several threads communicate, "
                           f"which "
                           "asynchronous collectives need (MPI_THREAD_SERIALIZED)")
    return MPI


def _in_step() -> bool:
    """Whether srun started this process. A batch script has most of Slurm's variables too, but is a process alone."""
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
    """The number of this machine, and how many there are. Only Slurm says it; of other launchers it is worked out, which
    is right if they fill one machine after the other."""
    if _is_task():
        return int(os.environ.get("SLURM_NODEID", "0")), int(os.environ.get("SLURM_STEP_NUM_NODES", "1"))
    here, beside = local_rank(), local_size()
    if here is None or not beside:
        return 0, 1
    return ((launched_rank() or 0) - here) // beside, -(-(launched_size() or 1) // beside)


def _is_task() -> bool:
    """Whether this very process is a task of Slurm, and no `mpiexec` stands between."""
    return _in_step() and _number(_LOCAL_SIZES) is None


def _tasks_here() -> int | None:
    """What Slurm says of this node in its list of all, such as 2(x3),1."""
    node = int(os.environ.get("SLURM_NODEID", "0"))
    for part in os.environ.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        tasks, _, times = part.rstrip(")").partition("(x")
        if not tasks.isdecimal():
            return None
        node -= int(times or 1)
        if node < 0:
            return int(tasks)
    return None
