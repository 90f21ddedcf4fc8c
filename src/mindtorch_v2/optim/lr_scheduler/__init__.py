"""`torch.optim.lr_scheduler`: schedules that change learning rates as training goes on."""

from __future__ import annotations

from ._base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _enable_get_lr_call,  # noqa: F401  (libraries take these from here)
    _format_param,  # noqa: F401
    _initial_mode,  # noqa: F401
    _LRScheduler,
    _param_groups_val_list,  # noqa: F401
    _update_param_group_val,  # noqa: F401
    _warn_get_lr_called_within_step,  # noqa: F401
)
from ._combined import ChainedScheduler, SequentialLR
from ._cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from ._cycles import CyclicLR, OneCycleLR
from ._factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from ._plateau import ReduceLROnPlateau

__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR",
    "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR",
    "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR", "_LRScheduler",
]

for _schedule in (ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, ExponentialLR,
                  LRScheduler, LambdaLR, LinearLR, MultiStepLR, MultiplicativeLR, OneCycleLR, PolynomialLR,
                  ReduceLROnPlateau, SequentialLR, StepLR, _LRScheduler):
    _schedule.__module__ = __name__  # as files name them
