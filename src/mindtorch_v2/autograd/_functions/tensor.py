"""Conversion and reshaping as custom functions."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._autograd.function import Function


class Type(Function):
    """`tensor.type(...)`, with a gradient of the type that the tensor had."""

    @staticmethod
    def forward(ctx: Any, i: Any, dest_type: Any) -> Any:
        """The tensor as another type."""
        warnings.warn("`torch.autograd._functions.Type` is deprecated as of PyTorch 2.1, please use "
                      "`torch.tensor.to(dtype=dtype)` instead.", FutureWarning, stacklevel=2)
        ctx.dtype = i.dtype
        return i.type(dest_type)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        """The gradient as the type before."""
        return grad_output.to(ctx.dtype), None


class Resize(Function):
    """`tensor.reshape(sizes)`."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: Any) -> Any:
        """A copy in another shape."""
        if tensor.numel() != math.prod(sizes):
            raise RuntimeError(f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in "
                               f"total), but the given tensor has a size of {'x'.join(map(str, tensor.shape))} "
                               f"({tensor.numel()} elements). autograd's resize can only change the shape of a given "
                               "tensor, while preserving the number of elements.")
        ctx.sizes = tensor.shape
        return tensor.reshape(sizes).clone()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        """The gradient in the shape before."""
        return grad_output.reshape(ctx.sizes), None
