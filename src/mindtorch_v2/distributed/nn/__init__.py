"""`torch.distributed.nn`: collectives that gradients flow through."""

from __future__ import annotations

from ..._outside import attributes
from .functional import all_gather, all_reduce, broadcast

__all__ = ["all_gather", "all_reduce", "broadcast"]

__getattr__ = attributes("distributed.nn", globals())
