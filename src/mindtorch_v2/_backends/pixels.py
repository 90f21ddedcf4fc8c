"""The exchange of pixels and channels: shapes and orders of dimensions, for every device.

`(cells, order, shape)`: an image is divided into cells, whose dimensions are reordered; the result has the shape.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["shuffled", "unshuffled"]

Plan = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _at_least(name: str, x: Any, factor: int, word: str) -> None:
    if x.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input with {x.ndim} "
                           "dimension(s)")
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {word}, but got {factor}")


def shuffled(x: Any, factor: int) -> Plan:
    """Channels become pixels."""
    _at_least("pixel_shuffle", x, factor, "upscale_factor")
    *lead, channels, height, width = x.shape
    if channels % (factor * factor):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                           f"upscale_factor, but input.size(-3)={channels} is not divisible by {factor * factor}")
    fewer = channels // (factor * factor)
    return ((math.prod(lead), fewer, factor, factor, height, width), (0, 1, 4, 2, 5, 3),
            (*lead, fewer, height * factor, width * factor))


def unshuffled(x: Any, factor: int) -> Plan:
    """Pixels become channels."""
    _at_least("pixel_unshuffle", x, factor, "downscale_factor")
    *lead, channels, height, width = x.shape
    for word, size, dim in (("height", height, -2), ("width", width, -1)):
        if size % factor:
            raise RuntimeError(f"pixel_unshuffle expects {word} to be divisible by downscale_factor, but "
                               f"input.size({dim})={size} is not divisible by {factor}")
    return ((math.prod(lead), channels, height // factor, factor, width // factor, factor), (0, 1, 3, 5, 2, 4),
            (*lead, channels * factor * factor, height // factor, width // factor))
