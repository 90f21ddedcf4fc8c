"""Sampling images at given positions, and grids of positions of affine maps."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES
from .grid_bicubic import CubicSamples, sample, sample_backward
from .spaced import spaced

Array = Any
BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


def _wide(a: Array) -> Array:
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def _reflected(place: Array, low: float, high: float) -> tuple[Array, Array]:
    """Positions mirrored into `[low, high]`, and the sign that their derivative gets."""
    span = high - low
    if span == 0:
        return np.zeros_like(place), np.zeros_like(place)
    away = place - place.dtype.type(low)
    sign = np.where(away < 0, -1, 1).astype(place.dtype)
    away = np.abs(away)
    rest = np.fmod(away, span)
    odd = np.floor(away / span) % 2 == 1
    made = np.where(odd, span - rest, rest) + low
    return made.astype(place.dtype), np.where(odd, -sign, sign)


def _places(grid: Array, size: int, padding_mode: int, align_corners: bool) -> tuple[Array, Array]:
    """Positions in pixels from positions in [-1, 1], and their derivative."""
    half = (size - 1) / 2 if align_corners else size / 2
    place = grid + 1
    if align_corners:
        place *= grid.dtype.type(half)
    else:
        # A grid of all pixels lands on whole numbers up to rounding, and which side of them decides the gradient:
        # so this rounds once, after the multiplication and the subtraction, as PyTorch does.
        place = (place.astype(np.float64) * half - 0.5).astype(grid.dtype)
    slope = np.full_like(place, half)
    if padding_mode == REFLECTION:
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        place, sign = _reflected(place, low, high)
        slope *= sign
    if padding_mode in (BORDER, REFLECTION):
        slope *= (place > 0) & (place < size - 1)
        place = np.clip(place, 0, size - 1)
    return place, slope


class Samples:
    """The pixels around every position: where they are, their weights and the weights' derivatives."""

    def __init__(self, x: Array, grid: Array, mode: int, padding_mode: int, align_corners: bool) -> None:
        self.sizes = x.shape[2:]
        self.nearest = mode == NEAREST
        count = len(self.sizes)
        points = grid.reshape(grid.shape[0], -1, count)
        # A grid names the last dimension of the image first.
        found = [_places(points[..., count - 1 - d], n, padding_mode, align_corners) for d, n in enumerate(self.sizes)]
        self.slopes = [slope for _, slope in found]
        self.floors = [np.rint(place) if self.nearest else np.floor(place) for place, _ in found]
        self.parts = [place - floor for (place, _), floor in zip(found, self.floors)]

    def corners(self) -> Any:
        """For every neighbour: flat pixel numbers, whether they are inside, a weight and its sign a dimension."""
        choices = (0,) if self.nearest else (0, 1)
        for corner in product(choices, repeat=len(self.sizes)):
            inside: Array = True
            index: Array = 0
            weights = []
            for floor, part, size, c in zip(self.floors, self.parts, self.sizes, corner):
                place = floor + c
                inside = inside & (place >= 0) & (place < size)
                index = index * size + np.clip(np.nan_to_num(place), 0, size - 1).astype(np.int64)
                weights.append(np.ones_like(part) if self.nearest else part if c else 1 - part)
            yield index, inside, weights, [1 if c else -1 for c in corner]


def _cubic(x: Array, grid: Array, padding_mode: int, align_corners: bool) -> CubicSamples:
    """Positions for cubic interpolation, where the padding mode applies to every neighbour by itself."""
    if x.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")

    def bound(place: Array, size: int) -> Array:
        if padding_mode == REFLECTION:
            low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
            place = _reflected(place, low, high)[0]
        return np.clip(place, 0, size - 1) if padding_mode in (BORDER, REFLECTION) else place

    return CubicSamples(x.shape[2:], grid, align_corners, bound)


def grid_sampler(x: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """The image at the grid's positions."""
    image, points = _wide(x), _wide(grid)
    if interpolation_mode == BICUBIC:
        cubic = _cubic(image, points, padding_mode, align_corners)
        found = sample(image, cubic, math.prod(grid.shape[1:-1]))
        return found.reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype, copy=False)
    samples = Samples(image, points, interpolation_mode, padding_mode, align_corners)
    flat = image.reshape(*x.shape[:2], math.prod(samples.sizes))
    made = np.zeros((*x.shape[:2], math.prod(grid.shape[1:-1])), image.dtype)
    for index, inside, weights, _ in samples.corners():
        weight = np.where(inside, math.prod(weights), 0)
        made += np.take_along_axis(flat, index[:, None], 2) * weight[:, None]
    return made.reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype, copy=False)


def grid_sampler_backward(grad: Array, x: Array, grid: Array, interpolation_mode: int, padding_mode: int,
                          align_corners: bool, output_mask: Any) -> tuple[Array, Array]:
    """Gradients of image and grid; those not asked for are empty."""
    image, points = _wide(x), _wide(grid)
    if interpolation_mode == BICUBIC:
        cubic = _cubic(image, points, padding_mode, align_corners)
        rows = _wide(grad).reshape(*x.shape[:2], math.prod(grid.shape[1:-1]))
        image_grad, grid_grad = sample_backward(rows, image, cubic, bool(output_mask[0]))
        return (image_grad.reshape(x.shape).astype(x.dtype, copy=False) if output_mask[0] else np.empty(0, x.dtype),
                grid_grad.reshape(grid.shape).astype(grid.dtype, copy=False))
    samples = Samples(image, points, interpolation_mode, padding_mode, align_corners)
    batch, channels = x.shape[:2]
    area = math.prod(samples.sizes)
    flat = image.reshape(batch, channels, area)
    pull = _wide(grad).reshape(batch, channels, math.prod(grid.shape[1:-1]))
    first = np.zeros(batch * channels * area, image.dtype)
    rows = np.arange(batch * channels).reshape(batch, channels, 1) * area
    second = [np.zeros_like(slope) for slope in samples.slopes]
    for index, inside, weights, signs in samples.corners():
        if output_mask[0]:
            weight = np.where(inside, math.prod(weights), 0)
            np.add.at(first, (rows + index[:, None]).reshape(-1), (pull * weight[:, None]).reshape(-1))
        if output_mask[1] and not samples.nearest:
            along = (np.take_along_axis(flat, index[:, None], 2) * pull).sum(1)
            along = np.where(inside, along, 0)
            for d, sign in enumerate(signs):
                others = [w for i, w in enumerate(weights) if i != d]
                second[d] += along * sign * math.prod(others)
    made = np.stack([total * slope for total, slope in zip(second, samples.slopes)][::-1], -1)
    return (first.reshape(x.shape).astype(x.dtype, copy=False) if output_mask[0] else np.empty(0, x.dtype),
            made.reshape(grid.shape).astype(grid.dtype, copy=False))


def _base(sizes: tuple[int, ...], align_corners: bool, dtype: np.dtype) -> Array:
    """Positions of all pixels in [-1, 1], the last dimension first, then 1."""
    axes = []
    for n in sizes:
        line = spaced(np.empty(n, dtype), -1, 1) if n > 1 else np.zeros(n, dtype)
        axes.append(line if align_corners else line * dtype.type(n - 1) / dtype.type(n))
    grid = np.meshgrid(*axes, indexing="ij")
    return np.stack([*grid[::-1], np.ones_like(grid[0])], -1).reshape(-1, len(sizes) + 1)


def affine_grid(theta: Array, size: Any, align_corners: bool) -> Array:
    """Where an affine map takes every pixel's position."""
    sizes = tuple(int(n) for n in size)[2:]
    wide = _wide(theta)
    made = _base(sizes, align_corners, wide.dtype) @ wide.swapaxes(1, 2)
    return made.reshape(theta.shape[0], *sizes, len(sizes)).astype(theta.dtype, copy=False)


def affine_grid_backward(grad: Array, size: Any, align_corners: bool) -> Array:
    """Gradient of `affine_grid` for the map."""
    sizes = tuple(int(n) for n in size)[2:]
    pull = _wide(grad).reshape(grad.shape[0], -1, len(sizes))
    made = pull.swapaxes(1, 2) @ _base(sizes, align_corners, pull.dtype)
    return made.astype(grad.dtype, copy=False)
