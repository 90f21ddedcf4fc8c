"""Maximum, average and adaptive pooling. One-dimensional pooling is two-dimensional over a row, as in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._backends.cpu import adaptive_pooling as adaptive
from .._backends.cpu import pooling as kernels
from .._dispatch.namespace import aten
from .._dispatch.promotion import FLOAT_DTYPES, pretty
from .._dispatch.registry import declare
from .._tensor import Tensor

Sizes = int | Sequence[int]


def _row(values: Sizes, fill: int) -> list[int]:
    """A size along the row for the same size in the plane; empty stays empty."""
    sizes = [values] if isinstance(values, int) else list(values)
    return [fill, *sizes] if sizes else []


def _picked(grad: Tensor, indices: Tensor, spatial: int) -> Tensor:
    """The elements of the last dimensions at flat indices."""
    shape = indices._a.shape
    flat = aten.gather(aten.flatten(grad, -spatial), -1, aten.flatten(indices, -spatial))
    return aten.view(flat, shape)


def _check_dimensions(name: str, x: Tensor, output_size: Sizes = 1) -> None:
    if not isinstance(output_size, int) and len(output_size) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(output_size)})")
    if x._a.ndim not in (2, 3):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {x._a.ndim}-dimensional tensor for argument #1 'self' "
                           f"(while checking arguments for {name})")


# -- maximum -----------------------------------------------------------------------------------------------------------


def _declare_max(spatial: int) -> None:
    name = f"max_pool{spatial}d"
    inner = f"{name}_with_indices"
    rest = (f"int[{spatial}] kernel_size, int[{spatial}] stride=[], int[{spatial}] padding=0, "
            f"int[{spatial}] dilation=1, bool ceil_mode=False")
    node = f"MaxPool{spatial}DWithIndicesBackward"

    def backward(grad: Tensor, self: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                 ceil_mode: bool, result1: Any) -> Any:
        return getattr(aten, f"{inner}_backward")(grad, self, kernel_size, stride, padding, dilation, ceil_mode,
                                                  result1)

    declare(f"{inner}(Tensor self, {rest}) -> (Tensor, Tensor)", cpu=kernels.max_pool(spatial), where="f",
            differentiable=(0,), node=f"{node}0", grad={"self": backward})
    declare(f"{inner}_backward(Tensor grad_output, Tensor self, int[{spatial}] kernel_size, int[{spatial}] stride, "
            f"int[{spatial}] padding, int[{spatial}] dilation, bool ceil_mode, Tensor indices) -> Tensor",
            cpu=kernels.max_pool_backward(spatial), where="n", node=f"{node}Backward0",
            grad={"grad_output": lambda grad, indices: _picked(grad, indices, spatial),
                  "self": lambda grad, self: aten.zeros_like(self)})
    declare(f"{name}(Tensor self, {rest}) -> Tensor", where="f",
            composite=lambda *arguments: getattr(aten, inner)(*arguments)[0])


_declare_max(2)
_declare_max(3)


def _max_pool1d_with_indices(self: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                             ceil_mode: bool) -> tuple[Tensor, Tensor]:
    row = aten.unsqueeze(self, -2)
    values, indices = aten.max_pool2d_with_indices(row, _row(kernel_size, 1), _row(stride, 1), _row(padding, 0),
                                                   _row(dilation, 1), ceil_mode)
    return aten.squeeze(values, -2), aten.squeeze(indices, -2)


def _max_pool1d(self: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                ceil_mode: bool) -> Tensor:
    array = self._a
    if array.ndim not in (2, 3) or 0 in array.shape[-2:]:
        raise RuntimeError("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
                           f"input, but got:{list(array.shape)}")
    for label, given in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding),
                         ("dilation", dilation)):
        sizes = (given,) if isinstance(given, int) else tuple(given)
        if len(sizes) > 1:
            raise RuntimeError(f"max_pool1d() {label} must be an int, list of ints or tuple of ints of size 1 but got "
                               f"size {len(sizes)}")
        if sizes and sizes[0] <= 0 and label != "padding":
            raise RuntimeError(f"max_pool1d() {label} must be greater than zero, but got {sizes[0]}")
        if sizes and sizes[0] < 0:
            raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {sizes[0]}")
    if array.dtype not in FLOAT_DTYPES:
        raise NotImplementedError(f"\"max_pool1d_impl\" not implemented for '{pretty(self.dtype)}'")
    kernel, margin, gap = _row(kernel_size, 1)[1], _row(padding, 0)[1], _row(dilation, 1)[1]
    if margin > kernel // 2:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={margin} and "
                           f"kernel_size={kernel}")
    room = array.shape[-1] + 2 * margin - gap * (kernel - 1) - 1
    if room < 0 and not ceil_mode:
        step = _row(stride, 1)[1] if stride or isinstance(stride, int) else kernel
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {room // step + 1}")
    return aten.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


declare("max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
        "int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)", composite=_max_pool1d_with_indices, where="f")
declare("max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] dilation=[1], "
        "bool ceil_mode=False) -> Tensor", composite=_max_pool1d, where="f")

declare("max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor", cpu=kernels.max_unpool(2), where="n",
        node="MaxUnpool2DBackward0", grad={"self": lambda grad, indices: _picked(grad, indices, 2)})
declare("max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] padding) -> Tensor",
        cpu=kernels.max_unpool(3), where="n", node="MaxUnpool3DBackward0",
        grad={"self": lambda grad, indices: _picked(grad, indices, 3)})

# -- average -----------------------------------------------------------------------------------------------------------


def _declare_average(spatial: int) -> None:
    name = f"avg_pool{spatial}d"

    def backward(grad: Tensor, self: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                 count_include_pad: bool, divisor_override: Any) -> Any:
        return getattr(aten, f"{name}_backward")(grad, self, kernel_size, stride, padding, ceil_mode,
                                                 count_include_pad, divisor_override)

    def again(grad: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
              divisor_override: Any) -> Any:
        return getattr(aten, name)(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    declare(f"{name}(Tensor self, int[{spatial}] kernel_size, int[{spatial}] stride=[], int[{spatial}] padding=0, "
            "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
            cpu=kernels.avg_pool(spatial), where="n", node=f"AvgPool{spatial}DBackward0", grad={"self": backward})
    declare(f"{name}_backward(Tensor grad_output, Tensor self, int[{spatial}] kernel_size, int[{spatial}] stride, "
            f"int[{spatial}] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
            cpu=kernels.avg_pool_backward(spatial), where="n", node=f"AvgPool{spatial}DBackwardBackward0",
            grad={"grad_output": again, "self": lambda grad, self: aten.zeros_like(self)})


_declare_average(2)
_declare_average(3)


def _avg_pool1d(self: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
                count_include_pad: bool) -> Tensor:
    _check_dimensions("avg_pool1d", self)
    row = aten.unsqueeze(self, -2)
    made = aten.avg_pool2d(row, _row(kernel_size, 1), _row(stride, 1), _row(padding, 0), ceil_mode, count_include_pad)
    return aten.squeeze(made, -2)


declare("avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, "
        "bool count_include_pad=True) -> Tensor", composite=_avg_pool1d, where="f")

# -- adaptive ----------------------------------------------------------------------------------------------------------


def _check_gradient(name: str, grad: Tensor) -> None:
    shape = grad._a.shape
    if 0 in shape[1:]:
        raise RuntimeError(f"{name}(): Expected grad_output to have non-zero size for non-batch dimensions, but "
                           f"grad_output has sizes {list(shape)} with dimension {shape.index(0, 1)} being empty")


def _declare_adaptive(spatial: int) -> None:
    average, largest = f"adaptive_avg_pool{spatial}d", f"adaptive_max_pool{spatial}d"

    def composite(self: Tensor, output_size: Sequence[int]) -> Tensor:
        sizes = (output_size,) * spatial if isinstance(output_size, int) else tuple(output_size)
        if len(sizes) != spatial:
            raise RuntimeError(f"{average}(): internal error: output_size must be {spatial}")
        if min(sizes) < 0:
            shown = ", ".join(map(str, sizes))
            raise RuntimeError(f"{average}: elements of output_size must be greater than or equal to 0 but received "
                               f"{{{shown}}}")
        if all(n == 1 for n in sizes) and self._a.ndim >= spatial:
            return aten.mean(self, tuple(range(-spatial, 0)), True)
        return getattr(aten, f"_{average}")(self, sizes)

    def backward(grad: Tensor, self: Tensor) -> Any:
        _check_gradient(f"{average}_backward", grad)
        return getattr(aten, f"_{average}_backward")(grad, self)

    def again(grad: Tensor, grad_output_shape: Any) -> Any:
        return getattr(aten, f"_{average}")(grad, grad_output_shape[-spatial:])

    node = f"AdaptiveAvgPool{spatial}DBackward"
    declare(f"{average}(Tensor self, int[{spatial}] output_size) -> Tensor", composite=composite, where="n")
    declare(f"_{average}(Tensor self, int[{spatial}] output_size) -> Tensor", cpu=adaptive.adaptive_avg_pool(spatial),
            where="n", node=f"{node}0", grad={"self": backward})
    declare(f"_{average}_backward(Tensor grad_output, Tensor self) -> Tensor",
            cpu=adaptive.adaptive_avg_pool_backward(spatial), where="n", node=f"{node}Backward0",
            grad={"grad_output": again, "self": lambda grad, self: aten.zeros_like(self)})

    def largest_backward(grad: Tensor, self: Tensor, result1: Any) -> Any:
        _check_gradient(f"{largest}_backward", grad)
        return getattr(aten, f"{largest}_backward")(grad, self, result1)

    node = f"AdaptiveMaxPool{spatial}DBackward"
    declare(f"{largest}(Tensor self, int[{spatial}] output_size) -> (Tensor, Tensor)",
            cpu=adaptive.adaptive_max_pool(spatial), where="n", differentiable=(0,), node=f"{node}0",
            grad={"self": largest_backward})
    declare(f"{largest}_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
            cpu=adaptive.adaptive_max_pool_backward(spatial), where="n", node=f"{node}Backward0",
            grad={"grad_output": lambda grad, indices: _picked(grad, indices, spatial),
                  "self": lambda grad, self: aten.zeros_like(self)})


_declare_adaptive(2)
_declare_adaptive(3)


def _adaptive_avg_pool1d(self: Tensor, output_size: Sizes) -> Tensor:
    _check_dimensions("adaptive_avg_pool1d", self, output_size)
    return aten.squeeze(aten.adaptive_avg_pool2d(aten.unsqueeze(self, -2), _row(output_size, 1)), -2)


def _adaptive_max_pool1d(self: Tensor, output_size: Sizes) -> tuple[Tensor, Tensor]:
    _check_dimensions("adaptive_max_pool1d", self, output_size)
    values, indices = aten.adaptive_max_pool2d(aten.unsqueeze(self, -2), _row(output_size, 1))
    return aten.squeeze(values, -2), aten.squeeze(indices, -2)


declare("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", composite=_adaptive_avg_pool1d, where="f")
declare("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", composite=_adaptive_max_pool1d,
        where="f")
