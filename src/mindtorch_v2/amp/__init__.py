"""`torch.amp`: mixed precision. `autocast` chooses the precision of ops, `GradScaler` keeps small gradients alive."""

from __future__ import annotations

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
