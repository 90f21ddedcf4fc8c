"""`torch.autograd.function`: custom functions."""

from __future__ import annotations

from typing import Any

from .._autograd.function import Function, FunctionCtx, FunctionNode, once_differentiable

BackwardCFunction = FunctionNode

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]


class NestedIOFunction(Function):
    """A function whose arguments and results are nested: PyTorch's own, from before functions were static."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("NestedIOFunction: write an autograd.Function with flat arguments instead")


class InplaceFunction(Function):
    """A function that may change its argument, and remembers whether it should."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
