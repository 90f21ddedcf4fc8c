"""`torch.utils.dlpack`: sharing memory with other array libraries."""

from __future__ import annotations

import enum
from typing import Any

from .._construct import from_dlpack
from .._tensor import Tensor


class DLDeviceType(enum.IntEnum):
    """Types of devices in DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule for the memory of a tensor on the CPU."""
    if not tensor.is_cpu:
        raise NotImplementedError(f"to_dlpack: only tensors on the CPU can be shared, not one on {tensor.device}")
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return tensor.__dlpack__()


__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
