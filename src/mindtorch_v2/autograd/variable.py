"""`torch.autograd.variable`: `Variable` is a tensor."""

from __future__ import annotations

from .._tensor import Tensor as Variable

__all__ = ["Variable"]
