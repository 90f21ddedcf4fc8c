"""`torch.testing._internal.custom_op_db`: custom ops that PyTorch's tests go through; the rows are its own."""

from __future__ import annotations

from .opinfo.core import OpInfo

custom_op_db: list[OpInfo] = []
