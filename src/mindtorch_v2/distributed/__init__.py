"""`torch.distributed` on MPI: groups of processes, collectives, messages. See docs/distributed.md.

`init_process_group("mpi")` and `("gloo")` use the same engine, `mpi4py`. `init_process_group` loads MPI itself.
"""

from __future__ import annotations

from .._outside import attributes
from . import distributed_c10d
from .distributed_c10d import *  # noqa: F403
from .distributed_c10d import _make_nccl_premul_sum as _make_nccl_premul_sum

__all__ = list(distributed_c10d.__all__)

__getattr__ = attributes("distributed", globals())
