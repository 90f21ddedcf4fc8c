"""`torch.nn.quantized`: the old place of `torch.ao.nn.quantized`."""

from __future__ import annotations

from ...ao.nn.quantized import FloatFunctional

__all__ = ["FloatFunctional"]
