"""`torch.distributed`: not available, which is what programs ask before they use it."""

from __future__ import annotations

from typing import Any

from .._absent import refusing, refusing_class

REASON = "torch.distributed.{0}: this runtime has no process groups; it runs in one process on one device"
_REFUSED = frozenset({
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "get_backend", "get_rank",
    "get_world_size", "init_device_mesh", "init_process_group", "irecv", "isend", "monitored_barrier", "new_group",
    "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "send",
})
# No object is an instance of it; programs name it in annotations.
ProcessGroup = refusing_class("ProcessGroup", RuntimeError, REASON.format("ProcessGroup"))


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_nccl_available() -> bool:
    """False."""
    return False


class ReduceOp:
    """How values of several processes are brought together: names only, since there is one process."""

    SUM, AVG, PRODUCT, MIN, MAX = "SUM", "AVG", "PRODUCT", "MIN", "MAX"
    BAND, BOR, BXOR, PREMUL_SUM = "BAND", "BOR", "BXOR", "PREMUL_SUM"


class group:
    """Where the group of all processes would be."""

    WORLD = None


is_gloo_available = is_mpi_available = is_torchelastic_launched = is_nccl_available


def __getattr__(name: str) -> Any:
    if name not in _REFUSED:
        raise AttributeError(f"module 'torch.distributed' has no attribute '{name}'")
    found = globals()[name] = refusing(name, RuntimeError, REASON.format(name))
    return found
