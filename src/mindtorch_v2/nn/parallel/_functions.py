"""`torch.nn.parallel._functions`: moving tensors between devices of one process, of which there is one."""

from __future__ import annotations

from ..._absent import refusing

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]

_REASON = "torch.nn.parallel._functions.{0}: this runtime has one device"
Broadcast, Gather, ReduceAddCoalesced, Scatter = (
    refusing(name, NotImplementedError, _REASON)
    for name in ("Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"))
