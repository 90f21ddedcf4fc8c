"""`torch.distributed.optim`: optimizers that share their work among ranks."""

from __future__ import annotations

from ..._outside import attributes
from .functional import (  # noqa: F401  PyTorch's names for other modules
    _FunctionalAdadelta,
    _FunctionalAdagrad,
    _FunctionalAdam,
    _FunctionalAdamax,
    _FunctionalAdamW,
    _FunctionalRMSprop,
    _FunctionalRprop,
    _FunctionalSGD,
)
from .utils import as_functional_optim
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer", "as_functional_optim"]

__getattr__ = attributes("distributed.optim", globals())
