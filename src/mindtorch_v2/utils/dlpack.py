"""`torch.utils.dlpack`: sharing memory with other array libraries."""

from __future__ import annotations

from typing import Any

from .._construct import from_dlpack
from .._tensor import Tensor


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule for the memory of a tensor on the CPU."""
    if not tensor.is_cpu:
        raise NotImplementedError(f"to_dlpack: only tensors on the CPU can be shared, not one on {tensor.device}")
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return tensor._a.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
