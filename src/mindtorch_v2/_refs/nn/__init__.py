"""`torch._refs.nn`: references of `torch.nn.functional`."""

from __future__ import annotations

from . import functional

__all__ = ["functional"]
