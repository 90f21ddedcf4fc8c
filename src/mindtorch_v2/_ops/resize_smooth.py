"""Resizing of images with antialiasing: `_upsample_bilinear2d_aa` and its relatives."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import resize_smooth as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor


def _declare(mode: str) -> None:
    name = f"_upsample_{mode}2d_aa"
    node = f"Upsample{mode.capitalize()}2DAaBackward"
    rest = "bool align_corners, float? scales_h=None, float? scales_w=None"
    kernel = kernels.smooth(name, mode)

    def back(grad: Tensor, shape: Any, output_size: Any, align_corners: bool, factors: Any) -> Tensor:
        sizes, given = kernels.resolved(shape, output_size, factors)
        return getattr(aten, f"{name}_backward")(grad, sizes, shape, align_corners, *given)

    def by_factors(x: Any, output_size: Any, align_corners: bool, factors: Any) -> Any:
        sizes, given = kernels.resolved(x.shape, output_size, factors)
        return kernel(x, sizes, align_corners, *given)

    declare(
        f"{name}(Tensor self, int[2] output_size, {rest}) -> Tensor", cpu=kernel, where="n", node=f"{node}0",
        grad={"self": lambda grad, self_shape, output_size, align_corners, scales_h, scales_w: back(
            grad, self_shape, output_size, align_corners, None if scales_h is None else (scales_h, scales_w))},
    )
    declare(
        f"{name}.vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        cpu=by_factors, where="n", node=f"{node}0",
        grad={"input": lambda grad, input_shape, output_size, align_corners, scale_factors: back(
            grad, input_shape, output_size, align_corners, scale_factors)},
    )
    declare(
        f"{name}_backward(Tensor grad_output, int[2] output_size, int[4] input_size, {rest}) -> Tensor",
        cpu=kernels.smooth_backward(name, mode), where="n", node=f"{node}Backward0",
        grad={"grad_output": lambda grad, output_size, align_corners, scales_h, scales_w: getattr(
            aten, f"{name}__default")(grad, output_size, align_corners, scales_h, scales_w)},
    )

    @choose(name, where="f")
    def chosen(input: Tensor, output_size: Any, align_corners: bool, *rest: Any, scale_factors: Any = None,
               **scales: Any) -> Tensor:
        if scale_factors is not None or output_size is None or (rest and isinstance(rest[0], (list, tuple))):
            return getattr(aten, f"{name}__vec")(input, output_size, align_corners, rest[0] if rest else scale_factors)
        return getattr(aten, f"{name}__default")(input, output_size, align_corners, *rest, **scales)


for _mode in kernels.FILTERS:
    _declare(_mode)
