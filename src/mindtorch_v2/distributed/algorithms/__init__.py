"""`torch.distributed.algorithms`: ranks with unequal inputs, and how gradients are reduced."""

from __future__ import annotations

from ..._outside import attributes
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]

__getattr__ = attributes("distributed.algorithms", globals())
