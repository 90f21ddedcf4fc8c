"""`torch.distributed.optim`: optimizers of several processes, of which there is one here."""

from __future__ import annotations

from .._absent import refusing_class

__all__ = ["DistributedOptimizer", "ZeroRedundancyOptimizer"]

_REASON = "torch.distributed.optim.{0}: this runtime has no process groups; it runs in one process on one device"
DistributedOptimizer = refusing_class("DistributedOptimizer", RuntimeError, _REASON.format("DistributedOptimizer"))
ZeroRedundancyOptimizer = refusing_class("ZeroRedundancyOptimizer", RuntimeError,
                                         _REASON.format("ZeroRedundancyOptimizer"))
