"""Sampling images at given positions with cubic interpolation between four pixels per direction."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

Array = Any
SHARPNESS = -0.75


def cubic_weights(part: Array) -> tuple[list[Array], list[Array]]:
    """Weights of the four neighbours of a position between the second and the third, and their derivatives."""
    a = SHARPNESS

    def outer(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def inner(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def outer_slope(x: Array) -> Array:
        return (3 * a * x - 10 * a) * x + 8 * a

    def inner_slope(x: Array) -> Array:
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    weights = [outer(part + 1), inner(part), inner(1 - part), outer(2 - part)]
    slopes = [outer_slope(part + 1), inner_slope(part), -inner_slope(1 - part), -outer_slope(2 - part)]
    return weights, slopes


class CubicSamples:
    """The sixteen pixels around every position."""

    def __init__(self, sizes: tuple[int, ...], grid: Array, align_corners: bool, bound: Any) -> None:
        """`bound(place, size)` brings pixel positions into the image as the padding mode says."""
        self.sizes = sizes
        self.bound = bound
        points = grid.reshape(grid.shape[0], -1, 2)
        self.floors, self.weights, self.slopes = [], [], []
        # A grid names the last dimension of the image first.
        for number, size in zip((1, 0), sizes, strict=True):
            half = (size - 1) / 2 if align_corners else size / 2
            place = points[..., number] + 1
            # Rounded once, as in PyTorch: see the positions of linear interpolation.
            place = (place.astype(np.float64) * half - (0 if align_corners else 0.5)).astype(grid.dtype)
            floor = np.floor(place)
            weights, slopes = cubic_weights(place - floor)
            self.floors.append(floor)
            self.weights.append(weights)
            self.slopes.append([slope * grid.dtype.type(half) for slope in slopes])

    def neighbours(self) -> Iterator[tuple[Array, Array, int, int]]:
        """Flat pixel numbers, whether they are inside, and which of the four rows and columns they are."""
        axes = []
        for floor, size in zip(self.floors, self.sizes, strict=True):
            places = [self.bound(floor + (offset - 1), size) for offset in range(4)]
            axes.append([((place >= 0) & (place < size), np.clip(np.nan_to_num(place), 0, size - 1).astype(np.int64))
                         for place in places])
        for i, (inside_row, row) in enumerate(axes[0]):
            for j, (inside_column, column) in enumerate(axes[1]):
                yield row * self.sizes[1] + column, inside_row & inside_column, i, j


def sample(image: Array, samples: CubicSamples, count: int) -> Array:
    """Values at the positions: (batch, channels, positions)."""
    flat = image.reshape(*image.shape[:2], math.prod(samples.sizes))
    made = np.zeros((*image.shape[:2], count), image.dtype)
    for index, inside, i, j in samples.neighbours():
        weight = np.where(inside, samples.weights[0][i] * samples.weights[1][j], 0)
        made += np.take_along_axis(flat, index[:, None], 2) * weight[:, None]
    return made


def sample_backward(pull: Array, image: Array, samples: CubicSamples, wants_image: bool) -> tuple[Array, Array]:
    """Gradients of the image (flat) and of the grid: (batch, positions, 2)."""
    batch, channels = image.shape[:2]
    area = math.prod(samples.sizes)
    flat = image.reshape(batch, channels, area)
    first = np.zeros(batch * channels * area, image.dtype)
    rows = np.arange(batch * channels).reshape(batch, channels, 1) * area
    down = np.zeros_like(samples.floors[0])
    right = np.zeros_like(samples.floors[0])
    for index, inside, i, j in samples.neighbours():
        if wants_image:
            weight = np.where(inside, samples.weights[0][i] * samples.weights[1][j], 0)
            np.add.at(first, (rows + index[:, None]).reshape(-1), (pull * weight[:, None]).reshape(-1))
        along = np.where(inside, (np.take_along_axis(flat, index[:, None], 2) * pull).sum(1), 0)
        down += along * samples.slopes[0][i] * samples.weights[1][j]
        right += along * samples.weights[0][i] * samples.slopes[1][j]
    return first, np.stack([right, down], -1)
