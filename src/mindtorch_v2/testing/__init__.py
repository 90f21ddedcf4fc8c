"""`torch.testing`: comparing tensors, and making some."""

from __future__ import annotations

from .._refused import refused
from . import _utils as _utils
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

FileCheck = refused("FileCheck")

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
