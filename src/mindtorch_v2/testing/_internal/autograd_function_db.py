"""`torch.testing._internal.autograd_function_db`: functions that PyTorch's tests go through; the rows are its own."""

from __future__ import annotations

from .opinfo.core import OpInfo

autograd_function_db: list[OpInfo] = []
