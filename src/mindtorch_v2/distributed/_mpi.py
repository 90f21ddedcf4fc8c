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

__all__ = ["LOCK", "installed", "launched_rank", "launched_size", "local_rank", "local_size", "mpi"]

# One thread is in MPI at a time: reductions of 16-bit floats are Python functions that MPI calls, and a thread that
# holds MPI's own lock and wants Python's would meet one that holds Python's and wants MPI's.
LOCK = threading.RLock()

# What launchers put into the environment: MPICH and Intel MPI (PMI), Open MPI, Slurm's srun, PMIx.
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
_LOCAL_RANKS = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
_LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE")

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


def _number(names: tuple[str, ...]) -> int | None:
    for name in names:
        text = os.environ.get(name, "")
        if text.isdecimal():
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
    return _number(_LOCAL_SIZES)
