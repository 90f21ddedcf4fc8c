"""`torch.ao.nn`: layers of quantized models, as far as unquantized ones contain them."""

from __future__ import annotations

from . import quantized

__all__ = ["quantized"]
