"""`torch.distributed.optim`: optimizers that share their work among ranks."""

from __future__ import annotations

from ..._outside import attributes
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]

__getattr__ = attributes("distributed.optim", globals())
