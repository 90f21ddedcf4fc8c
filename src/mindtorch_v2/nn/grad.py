"""`torch.nn.grad`: gradients of convolutions as functions."""

from __future__ import annotations

from typing import Any

from .._dispatch.namespace import aten
from .._tensor import Tensor


def _each(value: Any, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def _convolution(spatial: int) -> tuple[Any, Any]:
    def both(grad: Any, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int,
             mask: tuple[bool, bool, bool]) -> Any:
        return aten.convolution_backward(grad, input, weight, None, _each(stride, spatial), _each(padding, spatial),
                                         _each(dilation, spatial), False, (0,) * spatial, groups, mask)

    def for_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
        input = aten.expand(aten.zeros(1, dtype=grad_output.dtype, device=grad_output.device), tuple(input_size))
        return both(grad_output, input, weight, stride, padding, dilation, groups, (True, False, False))[0]

    def for_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                   dilation: Any = 1, groups: int = 1) -> Tensor:
        weight = aten.expand(aten.zeros(1, dtype=grad_output.dtype, device=grad_output.device), tuple(weight_size))
        return both(grad_output, input, weight, stride, padding, dilation, groups, (False, True, False))[1]

    for_input.__name__ = for_input.__qualname__ = f"conv{spatial}d_input"
    for_input.__doc__ = f"The gradient of `conv{spatial}d` for its input."
    for_weight.__name__ = for_weight.__qualname__ = f"conv{spatial}d_weight"
    for_weight.__doc__ = f"The gradient of `conv{spatial}d` for its weight."
    return for_input, for_weight


conv1d_input, conv1d_weight = _convolution(1)
conv2d_input, conv2d_weight = _convolution(2)
conv3d_input, conv3d_weight = _convolution(3)
