"""Kernels that pad: with a number, by reflection or by repeating the edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..._dispatch.promotion import stored_scalar
from . import providers
from .indexing import add_slices
from .memory import copy_, empty, fill_, preserving_clone_step

Array = Any
FLOAT32 = np.dtype(np.float32)


@providers.direct("constant_pad_nd")
def constant_pad_nd(a: Array, pad: Sequence[int], value: Any) -> Array:
    """Margins filled with a number; `pad` lists (before, after) from the last dimension on, negative ones crop."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * a.ndim:
        raise RuntimeError("Length of pad should be no more than twice the number of dimensions of the input. Pad "
                           f"length is {len(pad)} while the input has {a.ndim} dimensions.")
    shape = list(a.shape)
    source: list[slice] = [slice(None)] * a.ndim
    target: list[slice] = [slice(None)] * a.ndim
    for k in range(len(pad) // 2):
        before, after = pad[2 * k], pad[2 * k + 1]
        dim = a.ndim - 1 - k
        extent = a.shape[dim]
        cropped = extent + min(before, 0) + min(after, 0)
        if cropped < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        shape[dim] = extent + before + after
        source[dim] = slice(max(-before, 0), extent + min(after, 0))
        target[dim] = slice(max(before, 0), max(before, 0) + cropped)
    if max(pad, default=0) <= 0:
        return preserving_clone_step(a[tuple(source)])
    whole = fill_(empty(tuple(shape), a.dtype), stored_scalar(value, a.dtype).item())
    copy_(whole[tuple(target)], a[tuple(source)])
    return whole


def positions(mode: str, extent: int, before: int, after: int) -> Array:
    """Which entry of a dimension each padded entry repeats."""
    wanted = np.arange(-before, extent + after)
    if mode == "reflection":
        wanted = np.abs(wanted)
        return np.where(wanted >= extent, 2 * (extent - 1) - wanted, wanted)
    return wanted.clip(0, extent - 1)


def places(mode: str, extents: tuple[int, ...], padding: Sequence[int]) -> tuple[Array, Array, Array]:
    """`positions` for three dimensions, the first of which may have one entry."""
    return _places(mode, (1,) * (3 - len(extents)) + extents, (*padding, *(0,) * (6 - len(padding))))


@lru_cache(maxsize=64)
def _places(mode: str, extents: tuple[int, ...], padding: tuple[int, ...]) -> tuple[Array, Array, Array]:
    first, second, third = (positions(mode, extents[d], padding[4 - 2 * d], padding[5 - 2 * d]) for d in range(3))
    return first, second, third


def boxes(a: Array, spatial: int) -> Array:
    """A contiguous array with four dimensions: all but the spatial ones in the first."""
    shape = a.shape[-spatial:]
    return a.reshape(math.prod(a.shape[:-spatial]), *(1,) * (3 - spatial), *shape)


def check(mode: str, spatial: int, a: Array, padding: Sequence[int]) -> None:
    """PyTorch's conditions on padding by reflection or repetition."""
    if len(padding) != 2 * spatial:
        raise RuntimeError(f"padding size is expected to be {2 * spatial}, but got: {len(padding)}")
    batch = a.ndim - spatial - 2
    if a.ndim not in (spatial + 1, spatial + 2) or 0 in a.shape[batch + 1:]:
        raise RuntimeError(
            f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {list(a.shape)}"
        )
    for k in range(spatial):
        before, after = padding[2 * k], padding[2 * k + 1]
        dim = a.ndim - 1 - k
        extent = a.shape[dim]
        if mode == "reflection" and (before >= extent or after >= extent):
            raise RuntimeError(
                f"Argument #{4 + 2 * k}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {dim} of input {list(a.shape)}"
            )
        if extent + before + after < 1:
            raise RuntimeError(f"input (W: {extent}) is too small. Calculated output W: {extent + before + after}")


def mirrored(mode: str, spatial: int) -> Any:
    """The kernel of one mode for a number of spatial dimensions."""

    def kernel(a: Array, padding: Sequence[int]) -> Array:
        check(mode, spatial, a, padding)
        if a.size and providers.moves() and a.dtype is FLOAT32 and a.flags.c_contiguous:
            shape = [*a.shape[:-spatial], *[a.shape[d - spatial] + padding[-2 * d - 2] + padding[-2 * d - 1]
                                            for d in range(spatial)]]
            made = np.empty(shape, a.dtype)
            providers.native.pad(boxes(made, spatial), boxes(a, spatial), *places(mode, a.shape[-spatial:], padding))
            return made
        for k in range(spatial):
            dim = a.ndim - 1 - k
            if padding[2 * k] or padding[2 * k + 1]:
                a = a.take(positions(mode, a.shape[dim], padding[2 * k], padding[2 * k + 1]), dim)
        return a.copy() if not any(padding) else a

    return providers.direct("reflection_pad2d")(kernel) if (mode, spatial) == ("reflection", 2) else kernel


def mirrored_backward(mode: str, spatial: int) -> Any:
    """The adjoint of `mirrored`: every padded entry's gradient goes to the entry it repeats."""

    def kernel(grad: Array, a: Array, padding: Sequence[int]) -> Array:
        if a.size and providers.moves() and grad.dtype is FLOAT32 and grad.flags.c_contiguous:
            made = np.zeros(a.shape, a.dtype)
            providers.native.pad_back(boxes(made, spatial), boxes(grad, spatial),
                                      *places(mode, a.shape[-spatial:], padding))
            return made
        for k in range(spatial):
            dim = a.ndim - 1 - k
            whole = np.zeros((*grad.shape[:dim], a.shape[dim], *grad.shape[dim + 1:]), grad.dtype)
            add_slices(whole, dim, positions(mode, a.shape[dim], padding[2 * k], padding[2 * k + 1]), grad)
            grad = whole
        return grad

    return providers.direct("reflection_pad2d_backward")(kernel) if (mode, spatial) == ("reflection", 2) else kernel
