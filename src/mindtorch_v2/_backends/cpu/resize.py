"""Resizing kernels: every dimension in turn is a weighted sum of a few gathered copies of the input.

Positions are computed in float32 for everything except float64, as in PyTorch, because rounding decides which
neighbours are used. In the backward, the outputs that use an input as a certain neighbour are a range, so it sums over
ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES, pretty
from ..._dtype import FROM_NUMPY, HALF_TYPES
from . import providers
from .windows import along, window_sum

Array = Any
# One neighbour per position: its index and, unless it is 1, its weight.
Neighbour = tuple[Array, Array | None]
LETTERS = {1: ("W",), 2: ("H", "W"), 3: ("D", "H", "W")}
CUBIC = -0.75


def _scale(size: int, out: int, given: float | None, real: Any) -> Any:
    if given is not None and given > 0:
        return real(1.0 / given)
    return real(size) / real(out)


def _nearest(size: int, out: int, given: float | None, exact: bool) -> list[Neighbour]:
    # PyTorch computes these positions in float32 for every dtype.
    position = np.arange(out, dtype=np.float32)
    if exact:
        position += np.float32(0.5)
    if size == out and given is None:
        return [(np.arange(size), None)]
    places = np.floor(position * _scale(size, out, given, np.float32)).astype(np.int64)
    return [(np.minimum(places, size - 1), None)]


def _source(size: int, out: int, given: float | None, align_corners: bool, real: Any, below: bool) -> Array:
    """The output positions in the input; `below` zero if requested."""
    position = np.arange(out, dtype=real)
    if align_corners:
        return position * (real(size - 1) / real(out - 1) if out > 1 else real(0))
    found = _scale(size, out, given, real) * (position + real(0.5)) - real(0.5)
    return found if below else np.maximum(found, real(0))


def _linear(size: int, out: int, given: float | None, align_corners: bool, real: Any) -> list[Neighbour]:
    if size == out:
        return [(np.arange(size), None)]
    source = _source(size, out, given, align_corners, real, False)
    low = np.minimum(source.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    part = np.clip(source - low.astype(real), real(0), real(1))
    return [(low, real(1) - part), (high, part)]


def _cubic(size: int, out: int, given: float | None, align_corners: bool, real: Any) -> list[Neighbour]:
    source = _source(size, out, given, align_corners, real, True)
    floor = np.floor(source)
    t = np.clip(source - floor, real(0), real(1))
    a, first = real(CUBIC), floor.astype(np.int64)

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    parts = (far(t + 1), near(t), near(1 - t), far(2 - t))
    return [(np.clip(first + k - 1, 0, size - 1), part.astype(real)) for k, part in enumerate(parts)]


class Neighbours(list[Neighbour]):
    """The neighbours of all positions, also in the form of the C kernels: places and weights by neighbour and position,
    and how many positions there are after a resize, forward and back."""

    def __init__(self, found: list[Neighbour], size: int) -> None:
        super().__init__(found)
        places = np.array([places for places, _ in found], np.int64)
        weights = None if found[0][1] is None else np.array([weight for _, weight in found], np.float32)
        self.forward = places, weights, places.shape[1]
        self.backward = places, weights, size


@lru_cache(maxsize=64)
def _neighbours(mode: str, size: int, out: int, given: float | None, align_corners: bool, real: Any) -> Neighbours:
    if mode == "linear":
        return Neighbours(_linear(size, out, given, align_corners, real), size)
    if mode == "cubic":
        return Neighbours(_cubic(size, out, given, align_corners, real), size)
    return Neighbours(_nearest(size, out, given, mode == "exact"), size)


def _in_c(kernel: Callable[..., Array], x: Array, wanted: list[Any]) -> Array:
    """Resized along the last dimensions, in C: images in one go, and volumes in depth before."""
    if len(wanted) == 3:
        x = kernel(x, -3, wanted[0], None)
    return kernel(x, -2, None if len(wanted) == 1 else wanted[-2], wanted[-1])


def _forward_along(x: Array, axis: int, neighbours: Neighbours) -> Array:
    total: Array = None
    for places, weight in neighbours:
        part = np.take(x, places, axis)
        if weight is not None:
            part *= along(axis, x.ndim, weight)
        total = part if total is None else np.add(total, part, out=total)
    return total


def _backward_along(grad: Array, axis: int, size: int, neighbours: Neighbours) -> Array:
    total: Array = None
    each = np.arange(size)
    for places, weight in neighbours:
        pull = grad if weight is None else grad * along(axis, grad.ndim, weight)
        # Neighbours advance with the position, so those that are one input element are adjacent.
        part = window_sum(pull, axis, np.searchsorted(places, each, "left"), np.searchsorted(places, each, "right"))
        total = part if total is None else np.add(total, part, out=total)
    return total


def _check(op: str, x: Array, out: tuple[int, ...], spatial: int, mode: str) -> None:
    sizes = x.shape[2:]
    if len(out) != spatial:
        raise RuntimeError(f"It is expected output_size equals to {spatial}, but got size {len(out)}")
    if min(*sizes, *out) <= 0:
        letters = LETTERS[spatial]
        inside = ", ".join(f"{letter}: {n}" for letter, n in zip(letters, sizes))
        outside = ", ".join(f"{letter}: {n}" for letter, n in zip(letters, out))
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({inside}) output "
                           f"({outside})")
    if not x.shape[1]:
        raise RuntimeError(f"Non-empty {x.ndim}D data tensor expected but got a tensor with sizes {list(x.shape)}")
    if mode in ("linear", "cubic") and x.dtype not in FLOAT_DTYPES:
        raise NotImplementedError(f"\"{op}\" not implemented for '{pretty(FROM_NUMPY[x.dtype])}'")


def _real(dtype: np.dtype) -> Any:
    return np.float64 if dtype == np.float64 else np.float32


def _wide(a: Array) -> Array:
    return a.astype(np.float32) if a.dtype in HALF_TYPES else a


def upsample(op: str, mode: str, spatial: int) -> Callable[..., Array]:
    """Kernel of one resizing op; the scales come last."""
    corners = mode in ("linear", "cubic")

    def kernel(x: Array, output_size: Any, *rest: Any) -> Array:
        align_corners = bool(rest[0]) if corners else False
        scales = rest[1:] if corners else rest
        out = tuple(int(n) for n in output_size)
        _check(op, x, out, spatial, mode)
        made = _wide(x)
        wanted = [_neighbours(mode, x.shape[axis], size, scale, align_corners, _real(x.dtype))
                  for axis, size, scale in zip(range(-spatial, 0), out, scales)]
        if providers.rows(made):
            made = _in_c(providers.native.resize, made, [neighbours.forward for neighbours in wanted])
        else:
            for axis, neighbours in zip(range(-spatial, 0), wanted):
                made = _forward_along(made, axis, neighbours)
        return made.astype(x.dtype, copy=False)

    return kernel


def upsample_backward(op: str, mode: str, spatial: int) -> Callable[..., Array]:
    """Kernel of one resizing op's gradient."""
    corners = mode in ("linear", "cubic")

    def kernel(grad: Array, output_size: Any, input_size: Any, *rest: Any) -> Array:
        align_corners = bool(rest[0]) if corners else False
        scales = rest[1:] if corners else rest
        sizes = tuple(int(n) for n in input_size)[2:]
        made = _wide(grad)
        wanted = [_neighbours(mode, size, grad.shape[axis], scale, align_corners, _real(grad.dtype))
                  for axis, size, scale in zip(range(-spatial, 0), sizes, scales)]
        if providers.rows(made):
            made = _in_c(providers.native.resize_back, made, [neighbours.backward for neighbours in wanted])
        else:
            for axis, size, neighbours in zip(range(-spatial, 0), sizes, wanted):
                made = _backward_along(made, axis, size, neighbours)
        return made.astype(grad.dtype, copy=False)

    return kernel
