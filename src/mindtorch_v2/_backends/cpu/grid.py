"""Sampling images at given positions, and grids of positions of affine maps."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from ..._dtype import HALF_TYPES
from . import providers
from .grid_bicubic import CubicSamples, sample, sample_backward
from .spaced import pixel_positions

Array = Any
BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
MANY_CHANNELS = 6


def _wide(a: Array) -> Array:
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def _reflected(place: Array, low: float, high: float) -> tuple[Array, Array]:
    """Positions mirrored into `[low, high]`, and the sign of their derivative."""
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
        # A grid of all pixels lands on whole numbers up to rounding, and the side of them decides the gradient. So this
        # rounds once, after the multiplication and the subtraction, as PyTorch does.
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
    """The pixels around every position: their numbers, their weights and the weights' derivatives."""

    def __init__(self, sizes: tuple[int, ...], grid: Array, mode: int, padding_mode: int,
                 align_corners: bool) -> None:
        self.sizes = sizes
        self.nearest = mode == NEAREST
        count = len(self.sizes)
        points = grid.reshape(grid.shape[0], -1, count)
        # A grid names the last dimension of the image first.
        found = [_places(points[..., count - 1 - d], n, padding_mode, align_corners) for d, n in enumerate(self.sizes)]
        self.slopes = [slope for _, slope in found]
        self.neighbours = [self._neighbours(place, size) for (place, _), size in zip(found, self.sizes)]

    def _neighbours(self, place: Array, size: int) -> list[tuple[Array, Array, Array]]:
        """In one dimension, for the pixel at or before a position and the one after: number, weight and its slope.

        Pixels outside, and those of NaN positions, have a weight of zero and some valid number.
        """
        floor = np.rint(place) if self.nearest else np.floor(place)
        part = None if self.nearest else place - floor
        made = []
        for c in (0,) if self.nearest else (0, 1):
            at = floor + c if c else floor
            inside = (at >= 0) & (at < size)
            number = np.fmin(np.fmax(at, 0), size - 1).astype(np.int64)
            kind = place.dtype.type
            weight = inside.astype(kind) if part is None else np.where(inside, part if c else 1 - part, kind(0))
            made.append((number, weight, np.where(inside, kind(1 if c else -1), kind(0))))
        return made

    def corners(self) -> Any:
        """For every neighbour: flat pixel numbers, and in each dimension a weight and its slope."""
        for corner in product(*self.neighbours):
            index: Array = 0
            for (number, _, _), size in zip(corner, self.sizes):
                index = index * size + number
            yield index, [weight for _, weight, _ in corner], [slope for _, _, slope in corner]


class Pixels:
    """An image's pixels in the order that is fastest to pick from: with many channels, all of a pixel side by side."""

    def __init__(self, image: Array) -> None:
        self.batch, self.channels = image.shape[:2]
        self.area = math.prod(image.shape[2:])
        self.by_pixel = self.channels >= MANY_CHANNELS
        self.flat = self.arranged(image.reshape(self.batch, self.channels, self.area))

    def arranged(self, values: Array) -> Array:
        """Channels before positions, as everywhere, in this order or back from it."""
        return np.ascontiguousarray(values.swapaxes(1, 2)) if self.by_pixel else values

    def spread(self, weight: Array) -> Array:
        """A number for each position, to multiply all its channels with."""
        return weight[:, :, None] if self.by_pixel else weight[:, None]

    def cells(self, index: Array) -> Array:
        """The memory positions of all channels of the given pixels."""
        if self.by_pixel:
            return ((index + self.images()) * self.channels)[:, :, None] + np.arange(self.channels)
        return (self.images() * self.channels + np.arange(self.channels) * self.area)[:, :, None] + index[:, None]

    def images(self) -> Array:
        return np.arange(0, self.batch * self.area, self.area).reshape(-1, 1)

    def pick(self, index: Array) -> Array:
        """All channels of the given pixels. The numbers are known to be valid, which saves `take` a buffer."""
        if self.by_pixel:
            return self.flat.reshape(-1, self.channels).take(index + self.images(), 0, mode="clip")
        return self.flat.reshape(-1).take(self.cells(index), mode="clip")


def cubic_samples(sizes: tuple[int, ...], grid: Array, padding_mode: int, align_corners: bool) -> CubicSamples:
    """Positions for cubic interpolation, where the padding mode applies to every neighbour by itself."""
    if len(sizes) != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")

    def bound(place: Array, size: int) -> Array:
        if padding_mode == REFLECTION:
            low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
            place = _reflected(place, low, high)[0]
        return np.clip(place, 0, size - 1) if padding_mode in (BORDER, REFLECTION) else place

    return CubicSamples(sizes, grid, align_corners, bound)


def grid_sampler(x: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """The image at the grid's positions."""
    if not grid.size or not x.size:
        return np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    image, points = _wide(x), _wide(grid)
    if interpolation_mode == BICUBIC:
        cubic = cubic_samples(image.shape[2:], points, padding_mode, align_corners)
        found = sample(image, cubic, math.prod(grid.shape[1:-1]))
        return found.reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype, copy=False)
    if x.ndim == 4 and providers.rows(image) and providers.rows(points):
        found = np.empty((*x.shape[:2], *grid.shape[1:-1]), np.float32)
        providers.native.grid_sample(image, points.reshape(x.shape[0], -1, 2), interpolation_mode == NEAREST,
                                     padding_mode, align_corners, found.reshape(*x.shape[:2], -1))
        return found.astype(x.dtype, copy=False)
    samples = Samples(image.shape[2:], points, interpolation_mode, padding_mode, align_corners)
    pixels = Pixels(image)
    made: Array = None
    for index, weights, _ in samples.corners():
        part = pixels.pick(index)
        part *= pixels.spread(math.prod(weights))
        made = part if made is None else np.add(made, part, made)
    return pixels.arranged(made).reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype, copy=False)


def grid_sampler_backward(grad: Array, x: Array, grid: Array, interpolation_mode: int, padding_mode: int,
                          align_corners: bool, output_mask: Any) -> tuple[Array, Array]:
    """Gradients of image and grid; those not requested are empty."""
    if not grid.size or not x.size:
        return np.zeros_like(x), np.zeros_like(grid)
    image, points = _wide(x), _wide(grid)
    if interpolation_mode == BICUBIC:
        cubic = cubic_samples(image.shape[2:], points, padding_mode, align_corners)
        rows = _wide(grad).reshape(*x.shape[:2], math.prod(grid.shape[1:-1]))
        image_grad, grid_grad = sample_backward(rows, image, cubic, bool(output_mask[0]))
        return (image_grad.reshape(x.shape).astype(x.dtype, copy=False) if output_mask[0] else np.empty(0, x.dtype),
                grid_grad.reshape(grid.shape).astype(grid.dtype, copy=False))
    pulls = _wide(grad)
    if x.ndim == 4 and providers.rows(image) and providers.rows(points) and providers.rows(pulls):
        pixel_pulls = np.empty(image.shape, np.float32) if output_mask[0] else None
        point_pulls = np.empty(points.shape, np.float32)
        flat = (x.shape[0], -1, 2)
        providers.native.grid_sample_back(image, points.reshape(flat), interpolation_mode == NEAREST, padding_mode,
                                          align_corners, pulls.reshape(*x.shape[:2], -1), pixel_pulls,
                                          point_pulls.reshape(flat))
        return (np.empty(0, x.dtype) if pixel_pulls is None else pixel_pulls.astype(x.dtype, copy=False),
                point_pulls.astype(grid.dtype, copy=False))
    samples = Samples(image.shape[2:], points, interpolation_mode, padding_mode, align_corners)
    count = math.prod(grid.shape[1:-1])
    pixels = Pixels(image)
    pull = pixels.arranged(_wide(grad).reshape(*x.shape[:2], count))
    first = np.zeros(image.size, image.dtype)
    second = [np.zeros_like(slope) for slope in samples.slopes]
    for index, weights, slopes in samples.corners():
        if output_mask[0]:
            part = pull * pixels.spread(math.prod(weights))
            np.add.at(first, pixels.cells(index).reshape(-1), part.reshape(-1))
        if output_mask[1] and not samples.nearest:
            along = np.einsum("npc,npc->np" if pixels.by_pixel else "ncp,ncp->np", pixels.pick(index), pull)
            for d, slope in enumerate(slopes):
                second[d] += along * slope * math.prod(w for i, w in enumerate(weights) if i != d)
    made = np.stack([total * slope for total, slope in zip(second, samples.slopes)][::-1], -1)
    image_grad = pixels.arranged(first.reshape(pixels.flat.shape)).reshape(x.shape)
    return (image_grad.astype(x.dtype, copy=False) if output_mask[0] else np.empty(0, x.dtype),
            made.reshape(grid.shape).astype(grid.dtype, copy=False))


def affine_grid(theta: Array, size: Any, align_corners: bool) -> Array:
    """Where an affine map takes every pixel's position."""
    if theta.shape[0] != size[0]:
        raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{size[0]}, {theta.shape[2]}] but got: [{theta.shape[0]}, {theta.shape[2]}].")
    sizes = tuple(int(n) for n in size)[2:]
    wide = _wide(theta)
    made = pixel_positions(sizes, align_corners, wide.dtype) @ wide.swapaxes(1, 2)
    return made.reshape(theta.shape[0], *sizes, len(sizes)).astype(theta.dtype, copy=False)


def affine_grid_backward(grad: Array, size: Any, align_corners: bool) -> Array:
    """Gradient of `affine_grid` for the map."""
    sizes = tuple(int(n) for n in size)[2:]
    pull = _wide(grad).reshape(grad.shape[0], -1, len(sizes))
    made = pull.swapaxes(1, 2) @ pixel_positions(sizes, align_corners, pull.dtype)
    return made.astype(grad.dtype, copy=False)
