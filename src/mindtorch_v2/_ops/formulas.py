"""Small helpers that several derivative formulas share."""

from __future__ import annotations

from typing import Any

from .._dispatch.namespace import aten
from .._tensor import Tensor


def conj(x: Any) -> Any:
    """The complex conjugate; real tensors and numbers are returned as they are."""
    if isinstance(x, Tensor):
        return aten.conj(x) if x._a.dtype.kind == "c" else x
    return x.conjugate() if isinstance(x, complex) else x


def not_implemented(name: str) -> Any:
    """The formula of an op that PyTorch records but cannot differentiate: using it raises."""

    def formula(grad: Tensor) -> Any:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return formula


def scaled(grad: Tensor, factor: Any) -> Any:
    """`grad * factor`, without an op when the factor is 1."""
    return grad if isinstance(factor, (int, float)) and factor == 1 else grad * conj(factor)


def spread(grad: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Any:
    """Undo a reduction: put back the reduced dimensions (already wrapped) and expand to the input's shape."""
    if not keepdim and shape:
        for dim in sorted(dims):
            grad = aten.unsqueeze(grad, dim)
    return aten.expand(grad, shape)
