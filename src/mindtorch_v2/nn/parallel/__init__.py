"""`torch.nn.parallel`: one process and one device, so that only `DataParallel` has a meaning: it calls its module."""

from __future__ import annotations

from ..._absent import refusing, refusing_class
from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate",
           "scatter"]

_REASON = "torch.nn.parallel.{0}: this runtime has one device and no process groups"
DistributedDataParallel = refusing_class(
    "DistributedDataParallel", RuntimeError,
    "DistributedDataParallel: Default process group has not been initialized, and this runtime has none; it runs in "
    "one process")
gather = refusing("gather", NotImplementedError, _REASON.format("gather"))
parallel_apply = refusing("parallel_apply", NotImplementedError, _REASON.format("parallel_apply"))
replicate = refusing("replicate", NotImplementedError, _REASON.format("replicate"))
scatter = refusing("scatter", NotImplementedError, _REASON.format("scatter"))
