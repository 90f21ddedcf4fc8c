"""`torch.distributed.nn`: collectives that gradients flow through."""

from __future__ import annotations

from ..._outside import attributes
from .._groups import group
from .._reduction import ReduceOp
from .functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = ["ReduceOp", "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "group",
           "reduce", "reduce_scatter", "scatter"]

__getattr__ = attributes("distributed.nn", globals())
