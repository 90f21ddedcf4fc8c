"""`torch.amp`: mixed precision. Ops are not cast by this runtime; switched off, everything here works."""

from __future__ import annotations

from .autocast_mode import autocast, get_autocast_dtype, is_autocast_available, is_autocast_enabled
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "get_autocast_dtype", "is_autocast_available", "is_autocast_enabled"]
