"""`grid_sample` and `affine_grid`."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import grid as kernels
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty
from .._dispatch.registry import declare
from .._tensor import Tensor


def _again(given_grads: Any, grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int,
           padding_mode: int, align_corners: bool) -> Any:
    from .grid_curvature import second_derivative  # imported late: few programs need it

    return second_derivative(given_grads, grad_output, input, grid, interpolation_mode, padding_mode, align_corners)


def _declare(spatial: int) -> None:
    name = f"grid_sampler_{spatial}d"

    def gradients(grad: Tensor, input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool,
                  needs: Any) -> tuple[Any, Any]:
        made = getattr(aten, f"{name}_backward")(grad, input, grid, interpolation_mode, padding_mode, align_corners,
                                                 needs)
        return made[0] if needs[0] else None, made[1] if needs[1] else None

    rest = "int interpolation_mode, int padding_mode, bool align_corners"
    declare(f"{name}(Tensor input, Tensor grid, {rest}) -> Tensor", cpu=kernels.grid_sampler, where="f",
            node=f"GridSampler{spatial}DBackward0", grad={("input", "grid"): gradients})
    declare(f"{name}_backward(Tensor grad_output, Tensor input, Tensor grid, {rest}, bool[2] output_mask) -> "
            "(Tensor, Tensor)", cpu=kernels.grid_sampler_backward, where="n",
            node=f"GridSampler{spatial}DBackwardBackward0", grad={("grad_output", "input", "grid"): _again})


_declare(2)
_declare(3)


def _grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
                  align_corners: bool) -> Tensor:
    image, points = list(input._a.shape), list(grid._a.shape)
    about = f"but got input with sizes {image} and grid with sizes {points}"
    if image[:1] != points[:1]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {about}")
    spatial = len(image) - 2
    if points and points[-1] != spatial:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {spatial} in last dimension, but got grid with "
                           f"sizes {points}")
    if 0 in image[2:]:
        raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                           f"{image} with dimension {image.index(0, 2)} being empty")
    if len(image) not in (4, 5) or len(image) != len(points):
        dimensions = f"{len(image)}D" if len(image) in (4, 5) else "4D or 5D"
        raise RuntimeError(f"grid_sampler(): expected {dimensions} input and grid with same number of dimensions, "
                           f"{about}")
    if input._a.dtype != grid._a.dtype:
        raise RuntimeError(f"expected scalar type {pretty(input.dtype)} but found {pretty(grid.dtype)}")
    op = aten.grid_sampler_2d if spatial == 2 else aten.grid_sampler_3d
    return op(input, grid, interpolation_mode, padding_mode, align_corners)


# PyTorch has a second kernel for images under this name; here both are one.
declare("_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
        "bool align_corners) -> Tensor", where="f",
        composite=lambda input, grid, interpolation_mode, padding_mode, align_corners: aten.grid_sampler_2d(
            input, grid, interpolation_mode, padding_mode, align_corners))
declare("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
        "Tensor", composite=_grid_sampler, where="f")
declare(
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor", cpu=kernels.affine_grid, where="f",
    grad={"theta": lambda grad, size, align_corners: aten.affine_grid_generator_backward(grad, size, align_corners)},
)
declare(
    "affine_grid_generator_backward(Tensor grad_output, int[] size, bool align_corners) -> Tensor",
    cpu=kernels.affine_grid_backward, where="n",
    grad={"grad_output": lambda grad, size, align_corners: aten.affine_grid_generator(grad, size, align_corners)},
)
