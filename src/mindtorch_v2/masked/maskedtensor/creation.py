"""How masked tensors are made from data and a mask."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """A leaf that shares memory with the data and the mask."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """The data with a mask; gradients flow back to the data."""
    return MaskedTensor._from_values(data, mask)
