"""`torch.autograd.grad_mode`: switching recording on and off."""

from __future__ import annotations

from .._autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
