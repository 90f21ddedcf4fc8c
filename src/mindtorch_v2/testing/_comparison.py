"""`torch.testing._comparison`: comparing, under the names of PyTorch's file."""

from __future__ import annotations

from ._compare import assert_close

__all__ = ["assert_close"]
