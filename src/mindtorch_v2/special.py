"""`torch.special`: special functions.

>>> import mindtorch_v2 as torch
>>> torch.special.expit(torch.tensor(0.0))
tensor(0.5000)
"""

from __future__ import annotations

from typing import Any

from ._op_module import op_functions

_found: dict[str, Any] = op_functions("special", "special_")
globals().update(_found)
__all__ = sorted(_found)
