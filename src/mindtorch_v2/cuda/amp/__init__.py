"""`torch.cuda.amp`: the old names of `torch.amp`'s classes for CUDA, which switch themselves off here."""

from __future__ import annotations

from . import autocast_mode, common, grad_scaler
from .autocast_mode import autocast, custom_bwd, custom_fwd
from .common import amp_definitely_not_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "autocast_mode", "common", "custom_bwd",
           "custom_fwd", "grad_scaler"]
