"""`torch.testing._internal.common_quantization`: this runtime has no quantized tensors, so such tests are skipped.

Two helpers make small integers and their scales, which products with packed weights take.
"""

from __future__ import annotations

import unittest
from typing import Any

from ..._dispatch.namespace import aten
from ..._dtype import DType, float32, int32, int64
from ..._tensor import Tensor


def _group_quantize_tensor(w: Tensor, n_bit: int = 4, q_group_size: int = 16) -> tuple[Tensor, Tensor]:
    """The transposed matrix in `n_bit` bits, and for each group in a row its scale and what its middle stands for."""
    groups = aten.reshape(aten.t(w), (w.shape[1], -1, q_group_size))
    low, high = aten.amin(groups, (-1,), True), aten.amax(groups, (-1,), True)
    scales = aten.div(aten.clamp(aten.sub(high, low), min=1e-6), 2 ** n_bit - 1)
    numbers = aten.clamp(aten.round(aten.div(aten.sub(groups, low), scales)), 0, 2 ** n_bit - 1)
    zeros = aten.add(low, aten.mul(scales, 2 ** (n_bit - 1)))
    both = aten.cat([scales, zeros], -1)
    return (aten.to(aten.reshape(numbers, (w.shape[1], w.shape[0])), int32),
            aten.contiguous(aten.transpose(both, 0, 1)))


def _dynamically_quantize_per_channel(x: Tensor, quant_min: int, quant_max: int,
                                      target_dtype: DType) -> tuple[Tensor, Tensor, Tensor]:
    """Each row in small integers, symmetric about zero, with its scale and its zero."""
    wide = aten.to(x, float32)
    scales = aten.clamp(aten.div(aten.amax(aten.abs(wide), (1,)), (quant_max - quant_min) / 2), min=1.2e-7)
    scales = aten.to(scales, x.dtype)
    numbers = aten.clamp(aten.round(aten.div(wide, aten.unsqueeze(aten.to(scales, float32), 1))), quant_min, quant_max)
    return aten.to(numbers, target_dtype), scales, aten.zeros((len(x),), dtype=int64)


def __getattr__(name: str) -> Any:
    """A helper that skips the test which calls it."""
    if name.startswith("__"):
        raise AttributeError(name)

    def skipped(*args: Any, **kwargs: Any) -> Any:
        raise unittest.SkipTest(f"{name}: quantized tensors are not part of this runtime")

    skipped.__name__ = name
    return skipped
