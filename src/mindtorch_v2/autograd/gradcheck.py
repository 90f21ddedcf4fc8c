"""`torch.autograd.gradcheck` as a module: gradients beside differences of values."""

from __future__ import annotations

from .._autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
