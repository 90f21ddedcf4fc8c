"""Ops on images whose results keep the memory order of their inputs: channels last stays channels last.

Kernels compute in row-major order; if an operand has its channels last, the result is rearranged afterwards. Other
operands pay for one check of a flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._memory_format import CHANNELS_LAST_ORDER, contiguous_format

ORDERS = {len(order): order for order in CHANNELS_LAST_ORDER.values()}
# Op name: for each result that follows an operand, its number and the arguments of which one decides.
FOLLOWS: dict[str, tuple[tuple[int, tuple[int, ...]], ...]] = {
    "_convolution": ((0, (0, 1)),),
    "convolution": ((0, (0, 1)),),
    "convolution_backward": ((0, (1, 2)), (1, (1, 2))),
    "mkldnn_convolution": ((0, (0, 1)),),
    "native_batch_norm": ((0, (0,)),),
    "native_batch_norm_backward": ((0, (1,)),),
    "native_group_norm": ((0, (0,)),),
    "native_group_norm_backward": ((0, (1,)),),
    **{f"max_pool{n}d_with_indices": ((0, (0,)), (1, (0,))) for n in (2, 3)},
    **{name: ((0, (1,)),) for n in (2, 3) for name in (
        f"max_pool{n}d_with_indices_backward", f"reflection_pad{n}d_backward", f"replication_pad{n}d_backward")},
    **dict.fromkeys(("avg_pool2d_backward", "_adaptive_avg_pool2d_backward", "adaptive_max_pool2d_backward"),
                    ((0, (1,)),)),
    **{name: ((0, (0,)),) for n in (2, 3) for name in (
        f"upsample_nearest{n}d", f"_upsample_nearest_exact{n}d", f"reflection_pad{n}d",
        f"replication_pad{n}d", f"upsample_nearest{n}d_backward", f"_upsample_nearest_exact{n}d_backward")},
    **dict.fromkeys((
        "avg_pool2d", "max_unpool2d", "_adaptive_avg_pool2d",
        "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d", "_upsample_bilinear2d_aa",
        "_upsample_bicubic2d_aa", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward",
        "upsample_trilinear3d_backward", "constant_pad_nd", "pixel_shuffle", "pixel_unshuffle",
        "native_channel_shuffle"), ((0, (0,)),)),
}


def suggested_format(array: Any) -> Any:
    """The memory format that an array's strides look like."""
    for memory_format, order in CHANNELS_LAST_ORDER.items():
        if len(order) == array.ndim and _in_order(array, order[1:]):
            return memory_format
    return contiguous_format


def _in_order(array: Any, inner: tuple[int, ...]) -> bool:
    """Whether the strides grow from the last of these dimensions to the first, and then to the batch."""
    shape, strides = array.shape, array.strides
    if 0 in shape or not strides[1]:
        return False
    least = 0
    for d in (*inner[::-1], 0):
        # One channel and one pixel: nothing distinguishes the formats, so the usual one is chosen.
        if strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * max(shape[d], 1)
    return True


def is_channels_last(array: Any) -> bool:
    """Whether an array of images has its channels, not its width, last in memory; there may be gaps between them."""
    return not array.flags.c_contiguous and array.ndim in ORDERS and _in_order(array, ORDERS[array.ndim][1:])


def channels_last(array: Any) -> Any:
    """An array with its channels last in memory."""
    order = ORDERS[array.ndim]
    shuffled = np.ascontiguousarray(array.transpose(order))
    return shuffled.transpose(np.argsort(order))


def following(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose results keep the memory order of its operands, if the op is one of these."""
    rules = FOLLOWS.get(name)
    if rules is None:
        return kernel
    places = sorted({place for _, wanted in rules for place in wanted})

    def run(*arguments: Any) -> Any:
        made = kernel(*arguments)
        if all(arguments[place].flags.c_contiguous for place in places):
            return made
        last = {place for place in places if is_channels_last(arguments[place])}
        if not last:
            return made
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        for number, wanted in rules:
            if last.intersection(wanted) and results[number] is not None and results[number].ndim in ORDERS:
                results[number] = channels_last(results[number])
        return tuple(results) if isinstance(made, (tuple, list)) else results[0]

    return run
