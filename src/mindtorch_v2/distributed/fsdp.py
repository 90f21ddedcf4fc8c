"""`torch.distributed.fsdp`: models are not spread over processes here."""

from __future__ import annotations

from .._absent import refusing, refusing_class

__all__ = ["FullyShardedDataParallel", "fully_shard"]

_REASON = "torch.distributed.fsdp.{0}: this runtime has no process groups; it runs in one process on one device"
FullyShardedDataParallel = refusing_class("FullyShardedDataParallel", RuntimeError,
                                          _REASON.format("FullyShardedDataParallel"))
fully_shard = refusing("fully_shard", RuntimeError, _REASON.format("fully_shard"))
