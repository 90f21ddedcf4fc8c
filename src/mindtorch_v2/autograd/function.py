"""`torch.autograd.function`: custom functions."""

from __future__ import annotations

from .._autograd.function import Function, FunctionCtx, FunctionNode, once_differentiable

BackwardCFunction = FunctionNode

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "once_differentiable"]
