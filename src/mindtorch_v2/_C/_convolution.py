"""`torch._C._select_conv_backend`: PyTorch's name of the kernel for a convolution, without any vendor's library."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from .._backends.cpu.convolution_checks import check_convolution
from .._tensor import Tensor

_ConvBackend = enum.Enum("_ConvBackend", (
    "CudaDepthwise2d", "CudaDepthwise3d", "Cudnn", "CudnnTranspose", "Empty", "Miopen", "MiopenDepthwise",
    "MiopenTranspose", "Mkldnn", "MkldnnTranspose", "MkldnnEmpty", "NnpackSpatial", "Overrideable", "Slow2d", "Slow3d",
    "SlowDilated2d", "SlowDilated3d", "SlowTranspose2d", "SlowTranspose3d", "Winograd3x3Depthwise", "Xnnpack2d", "Mps",
    "MpsTranspose"))


def _select_conv_backend(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int],
                         padding: Sequence[int], dilation: Sequence[int], transposed: bool,
                         output_padding: Sequence[int], groups: int, bias_sizes: Any = None) -> Any:
    """The kernel that PyTorch has for these arguments: a row is an image of one line, and the CPU has its own."""
    check_convolution(input._a, weight._a, None if bias is None else bias._a, stride, padding, dilation, transposed,
                      output_padding, groups)
    if 0 in input.shape[:2]:
        return _ConvBackend.Empty
    if not input.is_cpu:
        return _ConvBackend.Overrideable
    kind = "Transpose" if transposed else "Dilated" if max(dilation) > 1 else ""
    return _ConvBackend[f"Slow{kind}{max(2, input.dim() - 2)}d"]
