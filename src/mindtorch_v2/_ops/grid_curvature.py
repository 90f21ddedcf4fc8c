"""The second derivative of `grid_sample`: the image at the grid's positions in ops that can be differentiated again."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from .._autograd.api import grad
from .._autograd.grad_mode import enable_grad
from .._autograd.graph import as_leaf
from .._backends.base import placed, to_host
from .._backends.cpu.grid import BICUBIC, Samples, cubic_samples
from .._backends.cpu.grid_bicubic import cubic_weights
from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._tensor import Tensor, wrap


def sampled(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """The image at the grid's positions. Which pixels these lie between is fixed; the weights depend on the grid."""
    sizes = input._a.shape[2:]
    points = aten.reshape(grid, (grid._a.shape[0], math.prod(grid._a.shape[1:-1]), len(sizes)))
    # A grid names the last dimension of the image first.
    along = [aten.select(points, -1, len(sizes) - 1 - d) for d in range(len(sizes))]
    where = to_host(grid._a)

    def constant(array: Any) -> Tensor:
        return wrap(placed(array, grid.device))

    corners: list[tuple[Any, Any]] = []
    if interpolation_mode == BICUBIC:
        cubic = cubic_samples(sizes, where, padding_mode, align_corners)
        weights = []
        for place, floor, size in zip(along, cubic.floors, sizes):
            pixel = (place + 1) * ((size - 1) / 2) if align_corners else (place + 1) * (size / 2) - 0.5
            weights.append(cubic_weights(pixel - constant(floor))[0])
        for index, inside, i, j in cubic.neighbours():
            corners.append((index, weights[0][i] * weights[1][j] * constant(inside)))
    else:
        samples = Samples(sizes, where, interpolation_mode, padding_mode, align_corners)
        moves = [None if samples.nearest else place - aten.detach(place) for place in along]  # zeros, with a history
        axes = [[constant(weight) if move is None else constant(weight) + constant(slope * scale) * move
                 for _, weight, slope in neighbours]
                for neighbours, scale, move in zip(samples.neighbours, samples.slopes, moves)]
        corners = [(index, math.prod(chosen[1:], start=chosen[0]))
                   for (index, _, _), chosen in zip(samples.corners(), product(*axes))]
    flat = aten.flatten(input, 2)
    made: Any = 0
    for index, weight in corners:
        cells = aten.expand(constant(index[:, None]), (*flat._a.shape[:2], index.shape[1]))
        made = made + aten.gather(flat, 2, cells) * aten.unsqueeze(weight, 1)
    return aten.reshape(made, (*flat._a.shape[:2], *grid._a.shape[1:-1]))


def second_derivative(given_grads: Any, grad_output: Tensor, input: Tensor, grid: Tensor, *how: Any) -> Any:
    """The gradients of both gradients of `grid_sample` by all that they are made from."""
    again = THREAD.state.grad
    with enable_grad():
        leaves = [aten.view_as(one, one) if again and one.requires_grad else as_leaf(aten.detach(one))
                  for one in (grad_output, input, grid)]
        first = grad(sampled(leaves[1], leaves[2], *how), leaves[1:], leaves[0], create_graph=True, allow_unused=True)
        pairs = [(one, by) for one, by in zip(first, given_grads) if one is not None and by is not None]
        if not pairs:
            return None, None, None
        return grad([one for one, _ in pairs], leaves, [by for _, by in pairs], create_graph=again, allow_unused=True)
