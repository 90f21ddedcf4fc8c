"""Sampling images at given positions, and grids of positions of affine maps."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..._backends.cpu.grid import BICUBIC, BORDER, NEAREST, REFLECTION, ZEROS
from ..._backends.cpu.grid_bicubic import cubic_weights
from ..._backends.cpu.spaced import pixel_positions
from ..._construct import tensor
from ..._dispatch.namespace import aten
from ..._dtype import float64, int64
from ..._tensor import Tensor
from . import formula


def _reflected(place: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """Positions mirrored between two, and the sign that their derivative gets."""
    span = high - low
    if span == 0:
        return aten.zeros_like(place), aten.zeros_like(place)
    away = place - low
    sign = aten.where(away < 0, -1.0, 1.0).to(place.dtype)
    away = away.abs()
    turns = (away / span).floor()
    rest = away - turns * span
    odd = aten.ne(turns - 2 * (turns / 2).floor(), 0)
    return aten.where(odd, span - rest, rest) + low, aten.where(odd, -sign, sign)


def _places(points: Tensor, size: int, padding_mode: int, align_corners: bool) -> tuple[Tensor, Tensor]:
    """Positions in pixels from positions between -1 and 1, and their derivative."""
    half = (size - 1) / 2 if align_corners else size / 2
    place = (points + 1) * half - (0.0 if align_corners else 0.5)
    place, slope = _bounded(place, size, padding_mode, align_corners)
    return place, slope * half


def _bounded(place: Tensor, size: int, padding_mode: int, align_corners: bool) -> tuple[Tensor, Tensor]:
    """Positions in pixels brought into the image as the padding mode says, and the derivative of that."""
    slope = aten.ones_like(place)
    if padding_mode == REFLECTION:
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        place, slope = _reflected(place, low, high)
    if padding_mode in (BORDER, REFLECTION):
        slope = slope * aten.logical_and(place > 0, place < size - 1).to(slope.dtype)
        place = place.clamp(0, size - 1)
    return place, slope


Neighbour = tuple[Tensor, Tensor, Tensor]


def _neighbours(place: Tensor, size: int, nearest: bool) -> list[Neighbour]:
    """In one dimension, for the pixel before a position and the one after: number, weight and its slope."""
    floor = place.round() if nearest else place.floor()
    part = place - floor
    made = []
    for c in (0,) if nearest else (0, 1):
        at = floor + c
        inside = aten.logical_and(at >= 0, at <= size - 1).to(place.dtype)
        weight = inside if nearest else inside * (part if c else 1 - part)
        number = aten.nan_to_num(at).clamp(0, size - 1).to(int64)
        weight = aten.where(inside > 0, weight, 0.0).to(place.dtype)  # also where the position is no number
        made.append((number, weight, inside if c else -inside))
    return made


def _four_neighbours(place: Tensor, size: int, padding_mode: int, align_corners: bool) -> list[Neighbour]:
    """The same for the two pixels before a position and the two after it, in cubic interpolation."""
    floor = place.floor()
    made = []
    for c, (weight, slope) in enumerate(zip(*cubic_weights(place - floor), strict=True)):
        at = _bounded(floor + (c - 1), size, padding_mode, align_corners)[0]
        inside = aten.logical_and(at >= 0, at < size)
        number = aten.nan_to_num(at).clamp(0, size - 1).to(int64)
        made.append((number, *(aten.where(inside, one, 0.0).to(place.dtype) for one in (weight, slope))))
    return made


class _Samples:
    """The pixels around every position of a grid."""

    def __init__(self, x: Tensor, grid: Tensor, mode: int, padding_mode: int, align_corners: bool) -> None:
        self.sizes = tuple(x.shape[2:])
        count = len(self.sizes)
        points = grid.flatten(1, -2)
        cubic = mode == BICUBIC
        if cubic and x.dim() != 4:
            raise ValueError("cubic interpolation of a volume")  # the CPU's kernel explains it
        # A grid names the last dimension of the image first. Cubic interpolation pads for each pixel by itself.
        found = [_places(points.select(-1, count - 1 - d), n, ZEROS if cubic else padding_mode, align_corners)
                 for d, n in enumerate(self.sizes)]
        self.slopes = [slope for _, slope in found]
        self.nearest = mode == NEAREST
        self.neighbours = [_four_neighbours(place, size, padding_mode, align_corners) if cubic
                           else _neighbours(place, size, self.nearest)
                           for (place, _), size in zip(found, self.sizes, strict=True)]

    def corners(self) -> Any:
        """For every neighbour: its number in the image, the weights, and their slopes."""
        for corner in product(*self.neighbours):
            index: Any = 0
            for (number, _, _), size in zip(corner, self.sizes, strict=True):
                index = index * size + number
            yield index, [weight for _, weight, _ in corner], [slope for _, _, slope in corner]


def _all(factors: list[Tensor]) -> Any:
    made: Any = 1
    for factor in factors:
        made = factor * made
    return made


@formula("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(x: Tensor, grid: Tensor, mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """The image at the grid's positions."""
    samples = _Samples(x, grid, mode, padding_mode, align_corners)
    flat = x.flatten(2)
    made: Any = None
    for index, weights, _ in samples.corners():
        part = flat.gather(2, _for_channels(index, flat)) * _all(weights).unsqueeze(1)
        made = part if made is None else made + part
    return made.reshape(*x.shape[:2], *grid.shape[1:-1])


def _for_channels(index: Tensor, flat: Tensor) -> Tensor:
    return index.unsqueeze(1).expand(-1, flat.shape[1], -1)


@formula("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(grad: Tensor, x: Tensor, grid: Tensor, mode: int, padding_mode: int, align_corners: bool,
                          output_mask: Any) -> tuple[Tensor, Tensor]:
    """Gradients of image and grid; those not asked for are empty."""
    samples = _Samples(x, grid, mode, padding_mode, align_corners)
    flat = x.flatten(2)
    pull = grad.flatten(2)
    first = aten.zeros_like(flat)
    second = [aten.zeros_like(slope) for slope in samples.slopes]
    for index, weights, slopes in samples.corners():
        wide = _for_channels(index, flat)
        if output_mask[0]:
            first = first.scatter_add(2, wide, pull * _all(weights).unsqueeze(1))
        if output_mask[1] and not samples.nearest:
            along = (flat.gather(2, wide) * pull).sum(1)
            for d, slope in enumerate(slopes):
                second[d] = second[d] + along * slope * _all([w for i, w in enumerate(weights) if i != d])
    made = aten.stack([total * slope for total, slope in zip(second, samples.slopes, strict=True)][::-1], -1)
    image = first.reshape(x.shape) if output_mask[0] else aten.empty(0, dtype=x.dtype, device=x.device)
    return image, made.reshape(grid.shape)


def _all_positions(beside: Tensor, size: Any, align_corners: bool) -> tuple[Tensor, tuple[int, ...]]:
    sizes = tuple(int(n) for n in size)[2:]
    base = pixel_positions(sizes, align_corners, np.dtype(np.float64 if beside.dtype is float64 else np.float32))
    return tensor(base, dtype=beside.dtype, device=beside.device), sizes


@formula("affine_grid_generator")
def affine_grid(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Where an affine map takes every pixel's position."""
    if theta.shape[0] != size[0]:
        raise ValueError("a map for each of another number of images")  # the CPU's kernel explains it
    base, sizes = _all_positions(theta, size, align_corners)
    made = aten.matmul(base.unsqueeze(0), theta.transpose(1, 2))
    return made.reshape(theta.shape[0], *sizes, len(sizes))


@formula("affine_grid_generator_backward")
def affine_grid_backward(grad: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Its gradient for the map."""
    base, sizes = _all_positions(grad, size, align_corners)
    pull = grad.reshape(grad.shape[0], -1, len(sizes))
    return aten.matmul(pull.transpose(1, 2), base.unsqueeze(0))
