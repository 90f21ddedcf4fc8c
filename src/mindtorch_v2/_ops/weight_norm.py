"""Weights as a length times a direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._autograd.grad_mode import is_grad_enabled
from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._tensor import Tensor


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(i for i in range(ndim) if i != dim % ndim)


def _norm_except_dim(v: Tensor, pow: int, dim: int) -> Tensor:
    # -1 stands for "no dimension": the norm of everything.
    return aten.norm(v, pow) if dim == -1 else aten.norm(v, pow, _others(v.ndim, dim), True)


declare("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", composite=_norm_except_dim, where="f")


def _interface(v: Any, g: Any, dim: int) -> tuple[Any, Any]:
    wide = v.astype(np.float32) if v.dtype.itemsize == 2 else v
    norms = np.sqrt((wide * wide).sum(_others(v.ndim, dim), keepdims=True))
    return (wide * (g / norms)).astype(v.dtype, copy=False), norms


def _interface_backward(grad_w: Any, v: Any, g: Any, norms: Any, dim: int) -> tuple[Any, Any]:
    along = (grad_w * v).sum(_others(v.ndim, dim), keepdims=True) / norms
    grad_v = g / norms * (grad_w - v * (along / norms))
    return grad_v.astype(v.dtype, copy=False), along.astype(g.dtype, copy=False)


def _gradients(grad: Tensor, v: Tensor, g: Tensor, result1: Tensor, dim: int) -> Any:
    if not is_grad_enabled():
        return aten._weight_norm_interface_backward(grad, v, g, result1, dim)
    norms = aten.norm(v, 2, _others(v.ndim, dim), True)
    along = aten.sum(grad * v, _others(v.ndim, dim), True) / norms
    return g / norms * (grad - v * (along / norms)), along


declare("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)", cpu=_interface, where="f",
        differentiable=(0,), grad={("v", "g"): _gradients})
declare("_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) "
        "-> (Tensor, Tensor)", cpu=_interface_backward, where="n")


def _weight_norm(v: Tensor, g: Tensor, dim: int) -> Tensor:
    if dim in (0, v.ndim - 1):
        return aten._weight_norm_interface(v, g, dim)[0]
    return aten.mul(v, aten.div(g, aten.norm_except_dim(v, 2, dim)))


declare("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", composite=_weight_norm, where="f")
