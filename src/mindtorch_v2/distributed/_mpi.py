"""MPI, loaded when the first group is made.

`mpi4py` finalizes MPI when Python ends, which waits for all ranks. A rank that ends with an exception would wait for
others that wait for it. So this module finalizes MPI itself, and only if all ranks came to their end (`_peers.leave`).
"""

from __future__ import annotations

import importlib.util
import threading
from functools import cache
from typing import Any

__all__ = ["LOCK", "installed", "mpi"]

# Only one thread is in MPI at a time. Reductions of 16-bit floats are Python functions that MPI calls. A thread that
# holds MPI's lock and needs Python's could meet one that holds Python's and needs MPI's.
LOCK = threading.RLock()

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
