"""`torch.autograd.function`: custom functions."""

from __future__ import annotations

from .._autograd.function import Function, FunctionCtx, FunctionNode, once_differentiable

BackwardCFunction = FunctionNode

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class InplaceFunction(Function):
    """A function that may change its argument, and remembers whether it should."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
