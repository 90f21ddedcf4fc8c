"""`torch.autograd.gradcheck` as a module: gradients beside differences of values."""

from __future__ import annotations

from .._autograd.gradcheck import (
    GradcheckError,
    get_analytical_jacobian,
    get_numerical_jacobian,
    gradcheck,
    gradgradcheck,
    numerical_jacobian,
    tensors_of,
)

__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "gradcheck", "gradgradcheck"]

_iter_tensors = tensors_of
_get_numerical_jacobian = numerical_jacobian
