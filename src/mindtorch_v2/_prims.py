"""`torch._prims`: PyTorch's simplest ops are outside of this runtime; tests ask about dtypes through it."""

from __future__ import annotations

from . import _prims_common as utils

__all__ = ["utils"]
