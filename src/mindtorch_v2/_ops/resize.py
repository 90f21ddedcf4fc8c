"""Resizing: `upsample_nearest2d` and its relatives, all declared from one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._backends.cpu import resize as kernels
from .._dispatch.namespace import aten
from .._dispatch.registry import choose, declare
from .._tensor import Tensor

SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}


def _camel(name: str) -> str:
    words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    return words[:-1] + words[-1].upper()


def _formulas(name: str, spatial: int, corners: bool) -> tuple[Any, Any]:
    """The gradient and its gradient. Formulas name what they need, so every signature has its own."""

    def back(grad: Tensor, shape: Any, output_size: Any, *rest: Any) -> Any:
        return getattr(aten, f"{name}_backward")(grad, output_size, shape, *rest)

    def again(*arguments: Any) -> Any:
        return getattr(aten, f"{name}__default")(*arguments)

    plain: dict[int, tuple[Any, Any]] = {
        1: (lambda grad, self_shape, output_size, scales: back(grad, self_shape, output_size, scales),
            lambda grad, output_size, scales: again(grad, output_size, scales)),
        2: (lambda grad, self_shape, output_size, scales_h, scales_w: back(
                grad, self_shape, output_size, scales_h, scales_w),
            lambda grad, output_size, scales_h, scales_w: again(grad, output_size, scales_h, scales_w)),
        3: (lambda grad, self_shape, output_size, scales_d, scales_h, scales_w: back(
                grad, self_shape, output_size, scales_d, scales_h, scales_w),
            lambda grad, output_size, scales_d, scales_h, scales_w: again(
                grad, output_size, scales_d, scales_h, scales_w)),
    }
    with_corners: dict[int, tuple[Any, Any]] = {
        1: (lambda grad, self_shape, output_size, align_corners, scales: back(
                grad, self_shape, output_size, align_corners, scales),
            lambda grad, output_size, align_corners, scales: again(grad, output_size, align_corners, scales)),
        2: (lambda grad, self_shape, output_size, align_corners, scales_h, scales_w: back(
                grad, self_shape, output_size, align_corners, scales_h, scales_w),
            lambda grad, output_size, align_corners, scales_h, scales_w: again(
                grad, output_size, align_corners, scales_h, scales_w)),
        3: (lambda grad, self_shape, output_size, align_corners, scales_d, scales_h, scales_w: back(
                grad, self_shape, output_size, align_corners, scales_d, scales_h, scales_w),
            lambda grad, output_size, align_corners, scales_d, scales_h, scales_w: again(
                grad, output_size, align_corners, scales_d, scales_h, scales_w)),
    }
    return (with_corners if corners else plain)[spatial]


def _of_bytes(kernel: Any) -> Any:
    """A kernel that also knows images of bytes, which are rounded after each of the two directions."""

    def rounded(x: Any, *rest: Any) -> Any:
        return np.clip(np.rint(kernel(x.astype(np.float32), *rest)), 0, 255).astype(np.uint8)

    def run(x: Any, output_size: Any, align_corners: bool, scale_h: Any = None, scale_w: Any = None) -> Any:
        if x.dtype != np.uint8:
            return kernel(x, output_size, align_corners, scale_h, scale_w)
        wide = rounded(x, (x.shape[2], output_size[1]), align_corners, None, scale_w)
        return rounded(wide, output_size, align_corners, scale_h, None)

    return run


def _declare(name: str, mode: str, spatial: int) -> None:
    corners = mode in ("linear", "cubic")
    middle = "bool align_corners, " if corners else ""
    scales = ", ".join(f"float? {scale}=None" for scale in SCALES[spatial])
    first, second = _formulas(name, spatial, corners)
    kernel = kernels.upsample(name, mode, spatial)
    if corners and spatial == 2:
        kernel = _of_bytes(kernel)
    declare(f"{name}(Tensor self, int[{spatial}] output_size, {middle}{scales}) -> Tensor",
            cpu=kernel, where="n", node=f"{_camel(name)}Backward0", grad={"self": first})
    declare(f"{name}_backward(Tensor grad_output, int[{spatial}] output_size, int[{spatial + 2}] input_size, {middle}"
            f"{scales}) -> Tensor", cpu=kernels.upsample_backward(name, mode, spatial), where="n",
            node=f"{_camel(name)}BackwardBackward0", grad={"grad_output": second})

    def resolved(shape: Sequence[int], output_size: Sequence[int] | None, factors: Any) -> tuple[Any, list[Any]]:
        """Sizes, and the factors that were given."""
        if output_size is None:
            output_size = [int(float(n) * f) for n, f in zip(shape[2:], factors)]
        return output_size, [None] * spatial if factors is None else [float(f) for f in factors]

    # The form with either sizes or factors, which `interpolate` calls. It is not shown as the other one inside.
    def by_factors(input: Any, output_size: Sequence[int] | None, *rest: Any) -> Any:
        sizes, given = resolved(input.shape, output_size, rest[-1])
        return kernel(input, sizes, *rest[:-1], *given)

    def back(grad: Tensor, input_shape: Any, output_size: Any, *rest: Any) -> Any:
        sizes, given = resolved(input_shape, output_size, rest[-1])
        return getattr(aten, f"{name}_backward")(grad, sizes, input_shape, *rest[:-1], *given)

    formula: Any = lambda grad, input_shape, output_size, scale_factors: back(
        grad, input_shape, output_size, scale_factors)
    if corners:
        formula = lambda grad, input_shape, output_size, align_corners, scale_factors: back(
            grad, input_shape, output_size, align_corners, scale_factors)
    declare(f"{name}.vec(Tensor input, int[]? output_size, {middle}float[]? scale_factors) -> Tensor",
            cpu=by_factors, where="n", node=f"{_camel(name)}Backward0", grad={"input": formula})

    if corners:
        @choose(name, where="n")
        def chosen(input: Tensor, output_size: Any, align_corners: bool, *rest: Any, scale_factors: Any = None,
                   **scales: Any) -> Tensor:
            if scale_factors is not None or output_size is None or (rest and isinstance(rest[0], (list, tuple))):
                return getattr(aten, f"{name}__vec")(
                    input, output_size, align_corners, rest[0] if rest else scale_factors)
            return getattr(aten, f"{name}__default")(input, output_size, align_corners, *rest, **scales)
    else:
        @choose(name, where="n")
        def chosen(input: Tensor, output_size: Any, *rest: Any, scale_factors: Any = None, **scales: Any) -> Tensor:
            if scale_factors is not None or output_size is None or (rest and isinstance(rest[0], (list, tuple))):
                return getattr(aten, f"{name}__vec")(input, output_size, rest[0] if rest else scale_factors)
            return getattr(aten, f"{name}__default")(input, output_size, *rest, **scales)


for _spatial in (1, 2, 3):
    _declare(f"upsample_nearest{_spatial}d", "nearest", _spatial)
    _declare(f"_upsample_nearest_exact{_spatial}d", "exact", _spatial)
_declare("upsample_linear1d", "linear", 1)
_declare("upsample_bilinear2d", "linear", 2)
_declare("upsample_trilinear3d", "linear", 3)
_declare("upsample_bicubic2d", "cubic", 2)
