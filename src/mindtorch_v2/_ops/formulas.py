"""Small helpers that several derivative formulas share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch.namespace import aten
from .._dtype import HALF_TYPES
from .._tensor import Tensor


def conj(x: Any) -> Any:
    """The complex conjugate; real tensors and numbers are returned as they are."""
    if isinstance(x, Tensor):
        return aten.conj(x) if x._a.dtype.kind == "c" else x
    return x.conjugate() if isinstance(x, complex) else x


# PyTorch's name for the nodes of ops that it records but cannot differentiate.
NOT_IMPLEMENTED = "torch::autograd::NotImplemented"


def not_implemented(name: str) -> Any:
    """The formula of an op that PyTorch records but cannot differentiate: using it raises."""

    def formula(grad: Tensor) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return formula


def large(x: Tensor) -> Any:
    """Where numbers are far enough from 0 to divide by; NaN is not."""
    return aten.abs(x) > (np.finfo(x._a.dtype).eps.item() if x._a.dtype not in HALF_TYPES else 0.0)


def scaled(grad: Tensor, factor: Any) -> Any:
    """`grad * factor`, without an op when the factor is 1."""
    return grad if isinstance(factor, (int, float)) and factor == 1 else grad * conj(factor)


def spread(grad: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Any:
    """Undo a reduction: put back the reduced dimensions (already wrapped) and expand to the input's shape."""
    if not keepdim and shape:
        for dim in sorted(dims):
            grad = aten.unsqueeze(grad, dim)
    return aten.expand(grad, shape)
