"""3x3 convolutions by Winograd's minimal filtering: 2x2 outputs from a 4x4 tile with 16 products instead of 36.

Input tiles, weights and results are transformed by additions only, and the products become 16 matrix products over
channels. Compared with columns of window contents it writes 4 instead of 9 numbers for every input element and
multiplies 2.25 times less. The transforms cost the same for every channel, so it needs enough channels to pay off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = Any
BLOCK_BYTES = 1 << 22
LEAST_CHANNELS = 16
LEAST_POSITIONS = 16
# Rows: the four numbers that a filter of three becomes.
FILTER = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)


def fits(weight: Array, window: Any, groups: int, out_shape: tuple[int, ...]) -> bool:
    """Whether this is a 3x3 convolution in float32 with enough channels and positions."""
    return (window.kernel == (3, 3) and groups == 1 and weight.dtype == np.float32
            and window.stride == (1, 1) and window.dilation == (1, 1) and max(window.padding) <= 2
            and min(weight.shape[:2]) >= LEAST_CHANNELS and out_shape[2] * out_shape[3] >= LEAST_POSITIONS)


def _tiles(size: int) -> int:
    return (size + 1) // 2


def _phases(x: Array, padding: tuple[int, ...], rows: int, columns: int) -> Array:
    """The padded image split by even and odd rows and columns: `(2, 2, channels, images, rows + 1, columns + 1)`."""
    images, channels, height, width = x.shape
    made = np.zeros((2, 2, channels, images, rows + 1, columns + 1), x.dtype)
    for i in (0, 1):
        # The first element of this phase that lies inside the image, there and in the phase.
        top = (i + padding[0]) % 2
        first_row = (top + padding[0] - i) // 2
        count_rows = len(range(top, height, 2))
        for j in (0, 1):
            left = (j + padding[1]) % 2
            first_column = (left + padding[1] - j) // 2
            count_columns = len(range(left, width, 2))
            source = x[:, :, top::2, left::2].swapaxes(0, 1)
            made[i, j, :, :, first_row: first_row + count_rows, first_column: first_column + count_columns] = source
    return made


def _spread_rows(even: Array, odd: Array, out: Array) -> None:
    """The input transform along rows: 4 numbers a tile from 4 elements."""
    np.subtract(even[..., :-1, :], even[..., 1:, :], out=out[0])
    np.add(odd[..., :-1, :], even[..., 1:, :], out=out[1])
    np.subtract(even[..., 1:, :], odd[..., :-1, :], out=out[2])
    np.subtract(odd[..., :-1, :], odd[..., 1:, :], out=out[3])


def _input_blocks(x: Array, padding: tuple[int, ...], rows: int, columns: int) -> Iterator[tuple[slice, Array]]:
    """Blocks of images and their transformed tiles `(16, channels, tiles)`; the memory is used again."""
    images, channels = x.shape[:2]
    block = max(1, BLOCK_BYTES // (16 * channels * rows * columns * x.itemsize))
    block = min(block, images)
    half = np.empty((2, 4, channels, block, rows, columns + 1), x.dtype)
    memory = np.empty((4, 4, channels, block, rows, columns), x.dtype)
    for start in range(0, images, block):
        part = slice(start, min(start + block, images))
        count = part.stop - start
        if count < block:
            half = np.empty((2, 4, channels, count, rows, columns + 1), x.dtype)
            memory = np.empty((4, 4, channels, count, rows, columns), x.dtype)
        phases = _phases(x[part], padding, rows, columns)
        for j in (0, 1):
            _spread_rows(phases[0, j], phases[1, j], half[j])
        even, odd = half
        np.subtract(even[..., :-1], even[..., 1:], out=memory[:, 0])
        np.add(odd[..., :-1], even[..., 1:], out=memory[:, 1])
        np.subtract(even[..., 1:], odd[..., :-1], out=memory[:, 2])
        np.subtract(odd[..., :-1], odd[..., 1:], out=memory[:, 3])
        yield part, memory.reshape(16, channels, -1)


def _gather(parts: Array) -> tuple[Array, Array]:
    """The output transform along the first axis: 2 numbers from 4."""
    low = parts[1] + parts[2]
    low += parts[0]
    high = parts[1] - parts[2]
    high -= parts[3]
    return low, high


def _transformed_weight(weight: Array) -> Array:
    """`(16, out, in)`."""
    out, inside = weight.shape[:2]
    rows = FILTER @ weight.reshape(out * inside, 3, 3)
    return np.ascontiguousarray((rows @ FILTER.T).reshape(out, inside, 16).transpose(2, 0, 1))


def winograd(x: Array, weight: Array, padding: tuple[int, ...]) -> Array:
    """The convolution, without bias."""
    images, _, height, width = x.shape
    out_channels = weight.shape[0]
    out_height, out_width = height + 2 * padding[0] - 2, width + 2 * padding[1] - 2
    rows, columns = _tiles(out_height), _tiles(out_width)
    filters = _transformed_weight(weight)
    made = np.empty((images, out_channels, out_height, out_width), x.dtype)
    for part, tiles in _input_blocks(x, padding, rows, columns):
        products = np.matmul(filters, tiles).reshape(4, 4, out_channels, -1, rows, columns)
        for i, half in enumerate(_gather(products)):
            for j, piece in enumerate(_gather(half)):
                target = made[part, :, i::2, j::2]
                target[...] = piece.swapaxes(0, 1)[:, :, : target.shape[2], : target.shape[3]]
    return made


def _output_tiles(grad: Array, rows: int, columns: int) -> Array:
    """The transpose of the output transform: `(16, channels, tiles)`."""
    images, channels, height, width = grad.shape
    split = np.zeros((2, 2, channels, images, rows, columns), grad.dtype)
    for i in (0, 1):
        for j in (0, 1):
            source = grad[:, :, i::2, j::2].swapaxes(0, 1)
            split[i, j, :, :, : source.shape[2], : source.shape[3]] = source
    half = np.empty((4, 2, channels, images, rows, columns), grad.dtype)
    _spread_pair(split[0], split[1], half)
    made = np.empty((4, 4, channels, images, rows, columns), grad.dtype)
    _spread_pair(half[:, 0], half[:, 1], made.swapaxes(0, 1))
    return made.reshape(16, channels, -1)


def _spread_pair(low: Array, high: Array, out: Array) -> None:
    out[0] = low
    np.add(low, high, out=out[1])
    np.subtract(low, high, out=out[2])
    np.negative(high, out=out[3])


def winograd_weight_gradient(grad: Array, x: Array, padding: tuple[int, ...]) -> Array:
    """Gradient of `winograd` for the weight."""
    rows, columns = _tiles(grad.shape[2]), _tiles(grad.shape[3])
    total: Array = np.zeros((16, grad.shape[1], x.shape[1]), grad.dtype)
    for part, tiles in _input_blocks(x, padding, rows, columns):
        total += np.matmul(_output_tiles(grad[part], rows, columns), tiles.swapaxes(1, 2))
    grid = total.transpose(1, 2, 0).reshape(-1, 4, 4)
    made = FILTER.T @ grid @ FILTER
    return made.reshape(grad.shape[1], x.shape[1], 3, 3)
