"""`torch.ao.nn`: layers of quantized models, as far as unquantized ones contain them."""

from __future__ import annotations

from ..._outside import attributes
from . import quantized

__all__ = ["quantized"]

__getattr__ = attributes("ao.nn", globals())
