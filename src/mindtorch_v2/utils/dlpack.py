"""`torch.utils.dlpack`: sharing memory with other array libraries."""

from __future__ import annotations

from typing import Any

from .._construct import from_dlpack
from .._dlpack import DLDeviceType
from .._tensor import Tensor


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule for the memory of a tensor on the CPU."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {type(tensor).__name__}")
    if not tensor.is_cpu:
        raise NotImplementedError(f"to_dlpack: only tensors on the CPU can be shared, not one on {tensor.device}")
    return tensor.detach().__dlpack__()


__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
