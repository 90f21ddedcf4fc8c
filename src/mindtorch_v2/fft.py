"""`torch.fft`: discrete Fourier transforms.

>>> import mindtorch_v2 as torch
>>> torch.fft.rfft(torch.tensor([1.0, 0.0, 0.0, 0.0]))
tensor([1.+0.j, 1.+0.j, 1.+0.j])
"""

from __future__ import annotations

from typing import Any

from ._op_module import op_functions

_found: dict[str, Any] = op_functions("fft", "fft_")
globals().update(_found)
__all__ = sorted(_found)
