"""`torch.ao`: of quantization, what unquantized models contain."""

from __future__ import annotations

from . import nn, quantization

__all__ = ["nn", "quantization"]
