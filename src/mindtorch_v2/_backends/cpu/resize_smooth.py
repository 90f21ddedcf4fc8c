"""Resizing with antialiasing: along each dimension every output is a weighted mean of all inputs that it covers.

A dimension's weights are a matrix of outputs by inputs, so that both directions are products with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.promotion import FLOAT_DTYPES, pretty
from ..._dtype import FROM_NUMPY, HALF_TYPES

Array = Any


def _triangle(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: Array) -> Array:
    """Keys' cubic with a = -0.5, which differs from the one of resizing without antialiasing."""
    a, x = -0.5, np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: Array) -> Array:
    return np.where((x >= -3) & (x < 3), np.sinc(x) * np.sinc(x / 3), 0)


# A filter, and the number of inputs that it covers if the size does not change.
FILTERS: dict[str, tuple[Callable[[Array], Array], int]] = {
    "bilinear": (_triangle, 2), "bicubic": (_cubic, 4), "lanczos": (_lanczos, 6)}


def weights(mode: str, size: int, out: int, given: float | None, align_corners: bool) -> Array:
    """The weight of every input in every output."""
    function, width = FILTERS[mode]
    if align_corners:
        scale = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        scale = 1.0 / given if given is not None and given > 0 else size / out
    stretch = max(scale, 1.0)
    support = width * 0.5 * stretch
    center = scale * (np.arange(out) + 0.5)
    first = np.maximum((center - support + 0.5).astype(np.int64), 0)[:, None]
    last = np.minimum((center + support + 0.5).astype(np.int64), size)[:, None]
    place = np.arange(size)[None]
    found = np.where((place >= first) & (place < last), function((place - center[:, None] + 0.5) / stretch), 0.0)
    total = found.sum(1, keepdims=True)
    return found / np.where(total == 0, 1, total)


def matrices(mode: str, sizes: Any, out: Any, scales: Any, align_corners: bool) -> list[Array]:
    """The weights of the input's rows and columns in the output's."""
    return [weights(mode, n, m, given, align_corners) for n, m, given in zip(sizes, out, scales)]


def resolved(shape: Any, output_size: Any, factors: Any) -> tuple[Any, Any]:
    """The size of the output and the given factors."""
    if output_size is None:
        output_size = [int(float(n) * f) for n, f in zip(shape[2:], factors)]
    return output_size, (None, None) if factors is None else tuple(float(f) for f in factors)


def check(op: str, x: Array, out: tuple[int, ...]) -> None:
    """Refuse sizes and dtypes that PyTorch refuses, for an array on any device."""
    if min(*x.shape[2:], *out) <= 0:
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input (H: {x.shape[2]}, W: "
                           f"{x.shape[3]}) output (H: {out[0]}, W: {out[1]})")
    if not x.shape[1]:
        raise RuntimeError(f"Non-empty {x.ndim}D data tensor expected but got a tensor with sizes {list(x.shape)}")
    if x.dtype not in FLOAT_DTYPES and x.dtype != np.uint8:
        raise NotImplementedError(f"\"{op}\" not implemented for '{pretty(FROM_NUMPY[x.dtype])}'")


def _fixed(x: Array, matrix: Array) -> Array:
    """Bytes by weights of 16 bits, as many of them behind the point as the largest weight leaves room for."""
    largest = float(matrix.max())
    bits = next(n for n in range(23) if n == 22 or 0.5 + largest * (1 << (n + 1)) >= 1 << 15)
    scaled = matrix * (1 << bits)
    whole = np.trunc(scaled + np.where(scaled < 0, -0.5, 0.5)).astype(np.int64)
    summed = np.matmul(x.astype(np.int64), whole.T) + (1 << (bits - 1))
    return np.clip(summed >> bits, 0, 255).astype(np.uint8)


def _apply(x: Array, matrices: list[Array]) -> Array:
    if x.dtype == np.uint8:
        # Rounded after each of the two directions.
        made = x if x.shape[3] == len(matrices[1]) else _fixed(x, matrices[1])
        if x.shape[2] == len(matrices[0]):
            return made
        return np.ascontiguousarray(_fixed(made.swapaxes(2, 3), matrices[0]).swapaxes(2, 3))
    real = x.dtype if x.dtype.kind == "f" and x.dtype not in HALF_TYPES else np.dtype(np.float32)
    height, width = (matrix.astype(real) for matrix in matrices)
    made = np.matmul(height, np.matmul(x.astype(real, copy=False), width.T))
    return made.astype(x.dtype, copy=False)


def smooth(op: str, mode: str) -> Callable[..., Array]:
    """Kernel of one antialiased resizing op."""

    def kernel(x: Array, output_size: Any, align_corners: bool, *scales: Any) -> Array:
        out = tuple(int(n) for n in output_size)
        check(op, x, out)
        return _apply(x, matrices(mode, x.shape[2:], out, scales, align_corners))

    return kernel


def smooth_backward(op: str, mode: str) -> Callable[..., Array]:
    """Kernel of one antialiased resizing op's gradient."""

    def kernel(grad: Array, output_size: Any, input_size: Any, align_corners: bool, *scales: Any) -> Array:
        sizes = tuple(int(n) for n in input_size)[2:]
        return _apply(grad, [one.T for one in matrices(mode, sizes, grad.shape[2:], scales, align_corners)])

    return kernel
