"""Kernels that move pixels: between channels and space, among channels, and in and out of sliding windows."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._dispatch.dtype_rules import unsupported
from ..._dtype import HALF_TYPES
from ..pixels import shuffled, unshuffled
from . import providers
from .convolution_checks import fixed
from .memory import copy_into
from .windows import expand_sizes, padded_copy, taps

Array = Any


def _moved(x: Array, cells: Any, order: Any, shape: Any) -> Array:
    """Cells in another order, in new memory."""
    seen = x.reshape(cells).transpose(order)
    made = np.empty(seen.shape, x.dtype)
    return copy_into(made, seen).reshape(shape)


def pixel_shuffle(x: Array, upscale_factor: int) -> Array:
    """Channels become pixels."""
    cells, order, shape = shuffled(x, upscale_factor)
    return _moved(x, cells, order, shape)


def pixel_unshuffle(x: Array, downscale_factor: int) -> Array:
    """Pixels become channels."""
    cells, order, shape = unshuffled(x, downscale_factor)
    return _moved(x, cells, order, shape)


def channel_shuffle(x: Array, groups: int) -> Array:
    """Channels of all groups in turn instead of group by group."""
    if x.ndim <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    batch, channels = x.shape[:2]
    if channels % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {channels} channels and {groups} "
                           "groups.")
    order = (0, 2, 1, *range(3, x.ndim + 1))
    return _moved(x, (batch, groups, channels // groups, *x.shape[2:]), order, x.shape)


class Blocks:
    """The checked geometry of sliding windows over planes."""

    def __init__(self, sizes: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
        self.kernel = expand_sizes(kernel_size, 2, "im2col", "kernel_size")
        self.dilation = expand_sizes(dilation, 2, "im2col", "dilation")
        self.padding = expand_sizes(padding, 2, "im2col", "padding")
        self.stride = expand_sizes(stride, 2, "im2col", "stride")
        for name, short, values in (("kernel size", "kernel", self.kernel), ("stride", "stride", self.stride),
                                    ("dilation", "dilation", self.dilation)):
            if min(values) <= 0:
                raise RuntimeError(f"{name} should be greater than zero, but got {short}_height: {values[0]} "
                                   f"{short}_width: {values[1]}")
        if min(self.padding) < 0:
            raise RuntimeError(f"padding should be non-negative, but got pad_height: {self.padding[0]} pad_width: "
                               f"{self.padding[1]}")
        self.out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(
            sizes, self.padding, self.dilation, self.kernel, self.stride))

    def windows(self, padded: Array) -> Array:
        """What each window element sees: a view `(batch, channels, *window, *positions)` of padded planes."""
        *lead, down, across = padded.strides
        (low, aside), (step, stride) = self.dilation, self.stride
        return np.ndarray((*padded.shape[:2], *self.kernel, *self.out), padded.dtype, padded, 0,
                          (*lead, low * down, aside * across, step * down, stride * across))


@functools.lru_cache(maxsize=256)
def _blocks(*geometry: Any) -> tuple[Blocks, tuple[Any, ...]]:
    """Windows and their taps."""
    blocks = Blocks(*geometry)
    return blocks, tuple(taps(blocks.kernel, blocks.stride, blocks.dilation, blocks.out))


@providers.direct("im2col")
def im2col(x: Array, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """Window contents: `(batch, channels * window, positions)`."""
    if x.ndim < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-x.ndim}, {x.ndim - 1}], but got 2)")
    blocks, _ = _blocks(x.shape[-2:], *map(fixed, (kernel_size, dilation, padding, stride)))
    if x.ndim not in (3, 4) or 0 in x.shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
                           f"dimensions for input, but got: {list(x.shape)}")
    if min(blocks.out) < 1:
        raise RuntimeError(f"Given input with spatial size {x.shape[-2:]}, kernel_size={blocks.kernel}, "
                           f"dilation={blocks.dilation}, padding={blocks.padding}, calculated shape of the array of "
                           f"sliding blocks as {blocks.out}, but its components must be at least one.")
    channels = x.shape[-3]
    batch = x.reshape(-1, *x.shape[-3:])
    padded = np.ascontiguousarray(padded_copy(batch, blocks.padding, blocks.padding, 0))
    made = np.empty((batch.shape[0], channels, *blocks.kernel, *blocks.out), x.dtype)
    copy_into(made, blocks.windows(padded))
    return made.reshape(*x.shape[:-3], channels * math.prod(blocks.kernel), math.prod(blocks.out))


@providers.direct("col2im")
def col2im(x: Array, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """Sums of window contents at their places: `(batch, channels, *output_size)`."""
    sizes = expand_sizes(output_size, 2, "col2im", "output_size")
    blocks, seen = _blocks(sizes, *map(fixed, (kernel_size, dilation, padding, stride)))
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
                           f"dimensions for input, but got: {list(x.shape)}")
    if x.shape[-2] % math.prod(blocks.kernel):
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
                           f"got input.size(1)={x.shape[-2]} and kernel_size={blocks.kernel}.")
    if x.shape[-1] != math.prod(blocks.out) or min(blocks.out) < 1:
        rows, columns = blocks.out
        raise RuntimeError(f"Given output_size={sizes}, kernel_size={blocks.kernel}, dilation={blocks.dilation}, "
                           f"padding={blocks.padding}, stride={blocks.stride}, expected size of input's dimension 2 to "
                           f"match the calculated number of sliding blocks {rows} * {columns} = {rows * columns}, but "
                           f"got input.size(2)={x.shape[-1]}.")
    if x.dtype.kind in "iu":
        raise unsupported("col2im_out_cpu", x.dtype)
    wide = x.astype(np.float32) if x.dtype in HALF_TYPES else x
    channels = x.shape[-2] // math.prod(blocks.kernel)
    split = wide.reshape(-1, channels, *blocks.kernel, *blocks.out)
    top, left = blocks.padding
    made = np.zeros((split.shape[0], channels, sizes[0] + 2 * top, sizes[1] + 2 * left), wide.dtype)
    for tap, key in seen:
        made[key] += split[:, :, tap[0], tap[1]]
    inside = made[:, :, top: top + sizes[0], left: left + sizes[1]]
    return np.ascontiguousarray(inside).reshape(*x.shape[:-2], channels, *sizes).astype(x.dtype, copy=False)
