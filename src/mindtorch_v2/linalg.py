"""`torch.linalg`: linear algebra.

>>> import mindtorch_v2 as torch
>>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).item()
6.0
"""

from __future__ import annotations

from typing import Any

from ._backends.cpu.linalg import LinAlgError as LinAlgError
from ._op_module import op_functions

_found: dict[str, Any] = op_functions("linalg", "linalg_")

globals().update(_found)
__all__ = sorted([*_found, "LinAlgError"])
