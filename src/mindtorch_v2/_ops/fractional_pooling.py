"""Fractional max pooling."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import fractional_pooling as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import declare
from .._tensor import Tensor


def _declare(spatial: int) -> None:
    name = f"fractional_max_pool{spatial}d"
    node = f"FractionalMaxPool{spatial}DBackward"

    def backward(grad: Tensor, self: Tensor, kernel_size: Any, output_size: Any, result1: Any) -> Any:
        return getattr(aten, f"{name}_backward")(grad, self, kernel_size, output_size, result1)

    def again(grad: Tensor, indices: Any) -> Any:
        flat = aten.flatten(grad, -spatial)
        return aten.reshape(aten.gather(flat, -1, aten.flatten(indices, -spatial)), indices._a.shape)

    sizes = f"int[{spatial}] kernel_size, int[{spatial}] output_size"
    declare(f"{name}(Tensor self, {sizes}, Tensor random_samples) -> (Tensor, Tensor)",
            cpu=kernels.fractional_max_pool(spatial), where="n", differentiable=(0,), node=f"{node}0",
            grad={"self": backward})
    declare(f"{name}_backward(Tensor grad_output, Tensor self, {sizes}, Tensor indices) -> Tensor",
            cpu=kernels.fractional_max_pool_backward(spatial), where="n", node=f"{node}Backward0",
            grad={"grad_output": again, "self": lambda grad, self: aten.zeros_like(self)})


_declare(2)
_declare(3)
