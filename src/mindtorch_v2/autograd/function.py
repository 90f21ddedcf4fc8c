"""`torch.autograd.function`: custom functions."""

from __future__ import annotations

from .._autograd.function import Function, FunctionNode, once_differentiable

FunctionCtx = FunctionNode
BackwardCFunction = FunctionNode

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "once_differentiable"]
