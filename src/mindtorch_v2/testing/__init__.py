"""`torch.testing`: comparing tensors."""

from __future__ import annotations

from ._compare import assert_close

__all__ = ["assert_close"]
