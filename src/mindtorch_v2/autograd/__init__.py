"""`torch.autograd`: gradients on demand."""

from __future__ import annotations

from .._autograd.api import backward, grad
from .._autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "no_grad", "set_grad_enabled"]
