"""Softmax and log-softmax."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import softmax as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._dtype import DType, float16, float32
from .._tensor import Tensor


def _total(x: Tensor, dim: int) -> Tensor:
    return aten.sum(x, (dim,), True) if x.ndim else x


def _normalised(op: str) -> Any:
    def apply(self: Tensor, dim: int, dtype: DType | None) -> Tensor:
        # Only other devices have a kernel that widens while it computes; here the widening is an op of its own.
        wide = self if dtype is None else aten.to__dtype_layout(self, dtype=dtype)
        return getattr(aten, op)(wide, dim, False)

    return apply


declare("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", composite=_normalised("_softmax"))
declare("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
        composite=_normalised("_log_softmax"))


def _input_dtype(result: Tensor, half_to_float: bool) -> Any:
    return float16 if half_to_float and result.dtype is float32 else result.dtype


declare(
    "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", cpu=kernels.softmax, where="f", meta="same",
    grad={"self": lambda grad, result, dim, half_to_float: aten._softmax_backward_data(
        grad, result, dim, _input_dtype(result, half_to_float))},
)
declare(
    "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", cpu=kernels.log_softmax, where="f",
    meta="same",
    grad={"self": lambda grad, result, dim, half_to_float: aten._log_softmax_backward_data(
        grad, result, dim, _input_dtype(result, half_to_float))},
)
declare(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    cpu=kernels.softmax_backward, where="f", meta="same",
    grad={
        "grad_output": lambda grad, output, dim, input_dtype: aten._softmax_backward_data(
            grad, output, dim, input_dtype),
        "output": lambda grad, grad_output, output, dim: (
            grad * (grad_output - _total(grad_output * output, dim)) - grad_output * _total(grad * output, dim)),
    },
)
declare(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    cpu=kernels.log_softmax_backward, where="f", meta="same",
    grad={
        "grad_output": lambda grad, output, dim: grad - _total(grad * aten.exp(output), dim),
        "output": lambda grad, grad_output, output, dim: -(grad * aten.exp(output) * _total(grad_output, dim)),
    },
)
