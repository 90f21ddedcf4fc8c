"""`torch.onnx.operators`: functions that an exporter would write as ops of their own."""

from __future__ import annotations

from typing import Any

from .._construct import tensor
from .._tensor import Tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes of a tensor as a tensor.

    >>> import mindtorch_v2 as torch
    >>> shape_as_tensor(torch.ones(2, 3))
    tensor([2, 3])
    """
    return tensor([*x.shape])


def reshape_from_tensor_shape(x: Tensor, shape: Any) -> Tensor:
    """`x.reshape` with sizes that are in a tensor."""
    return x.reshape([int(size) for size in shape])
