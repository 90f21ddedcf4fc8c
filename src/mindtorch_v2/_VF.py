"""`torch._VF`: functions of `torch` under the address that PyTorch's own layers use.

>>> import mindtorch_v2 as torch
>>> torch._VF.relu(torch.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from __future__ import annotations

import sys
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(sys.modules[__package__ or ""], name)
