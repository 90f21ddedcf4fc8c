"""`torch.nn.parallel`: `DistributedDataParallel` for several processes; with one device, `DataParallel` calls its
module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._absent import refusing
from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate",
           "scatter"]

_REASON = "torch.nn.parallel.{0}: this runtime has one device"
gather = refusing("gather", NotImplementedError, _REASON)
parallel_apply = refusing("parallel_apply", NotImplementedError, _REASON)
replicate = refusing("replicate", NotImplementedError, _REASON)
scatter = refusing("scatter", NotImplementedError, _REASON)
scatter_kwargs = refusing("scatter_kwargs", NotImplementedError, _REASON)

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel


def __getattr__(name: str) -> Any:
    # It needs torch.distributed, which programs of one process do without.
    if name != "DistributedDataParallel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .distributed import DistributedDataParallel

    globals()[name] = DistributedDataParallel
    return DistributedDataParallel
