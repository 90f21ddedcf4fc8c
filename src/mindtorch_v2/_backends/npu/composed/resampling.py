"""Padding by reflection or repetition, and resizing: each dimension in turn is a weighted sum of a few gathered copies.

The functions of the CPU's kernels compute on the host which entries are gathered, and their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...._dtype import HALF_TYPES
from ...cpu import padding, resize
from ..arrays import FLOAT32, NpuArray, converted, new
from ..call import CALLS
from .places import copied
from .registry import COMPOSED, TO_DEVICE, Kernel
from .views import zeros

SPATIAL = (1, 2, 3)


def _gathered(x: NpuArray, dim: int, neighbours: list[resize.Neighbour]) -> NpuArray:
    out: Any = None
    for places, weight in neighbours:
        part = new(x, (*x.shape[:dim], len(places), *x.shape[dim + 1:]))
        CALLS.IndexSelect(x, dim, _sent(places, x), part)
        if weight is not None:
            CALLS.InplaceMul(part, _weights(weight, x, dim))
        if out is None:
            out = part
        else:
            CALLS.InplaceAdd(out, part, 1)
    return out


def _spread_back(grad: NpuArray, dim: int, extent: int, neighbours: list[resize.Neighbour]) -> NpuArray:
    """The adjoint of `_gathered`: entries go back to where they were gathered."""
    shape = (*grad.shape[:dim], extent, *grad.shape[dim + 1:])
    out = zeros(grad, shape)
    for places, weight in neighbours:
        part = grad
        if weight is not None:
            part = new(grad, grad.shape)
            CALLS.Mul(grad, _weights(weight, grad, dim), part)
        more = new(grad, shape)
        CALLS.IndexAdd(out, dim, _sent(places, grad), part, 1, more)
        out = more
    return out


def _sent(values: np.ndarray, beside: NpuArray) -> NpuArray:
    return TO_DEVICE[0](np.ascontiguousarray(values), beside.device)


def _weights(values: np.ndarray, beside: NpuArray, dim: int) -> NpuArray:
    """Weights along a dimension."""
    made = _sent(values.astype(beside.dtype, copy=False), beside)
    after = beside.ndim - dim - 1
    item = made.dtype.itemsize
    return made.over((len(values),) + (1,) * after, (item,) * (after + 1), made.offset, made.dtype)


# -- padding -----------------------------------------------------------------------------------------------------------


def _mirrored(mode: str, spatial: int) -> tuple[Kernel, Kernel]:
    def kernel(self: NpuArray, pad: Sequence[int]) -> NpuArray:
        padding.check(mode, spatial, self, pad)
        made = self
        for k in range(spatial):
            dim = self.ndim - 1 - k
            if pad[2 * k] or pad[2 * k + 1]:
                places = padding.positions(mode, self.shape[dim], pad[2 * k], pad[2 * k + 1])
                made = _gathered(made, dim, [(places, None)])
        return copied(self) if made is self else made

    def backward(grad: NpuArray, self: NpuArray, pad: Sequence[int]) -> NpuArray:
        for k in range(spatial):
            dim = self.ndim - 1 - k
            places = padding.positions(mode, self.shape[dim], pad[2 * k], pad[2 * k + 1])
            grad = _spread_back(grad, dim, self.shape[dim], [(places, None)])
        return grad

    return kernel, backward


for _mode in ("reflection", "replication"):
    for _spatial in SPATIAL:
        _name = f"{_mode}_pad{_spatial}d"
        COMPOSED[_name], COMPOSED[f"{_name}_backward"] = _mirrored(_mode, _spatial)


# -- resizing ----------------------------------------------------------------------------------------------------------


def _resized(name: str, mode: str, spatial: int) -> tuple[Kernel, Kernel, Kernel]:
    corners = mode in ("linear", "cubic")

    def kernel(self: NpuArray, output_size: Any, *rest: Any) -> NpuArray:
        align, scales = (bool(rest[0]), rest[1:]) if corners else (False, rest)
        sizes = tuple([int(n) for n in output_size])
        resize._check(name, self, sizes, spatial, mode)
        made = converted(self, FLOAT32) if self.dtype in HALF_TYPES else self
        for dim, size, scale in zip(range(self.ndim - spatial, self.ndim), sizes, scales, strict=True):
            made = _gathered(made, dim, resize._neighbours(mode, self.shape[dim], size, scale, align,
                                                           resize._real(self.dtype)))
        return converted(made, self.dtype)

    def backward(grad: NpuArray, output_size: Any, input_size: Any, *rest: Any) -> NpuArray:
        align, scales = (bool(rest[0]), rest[1:]) if corners else (False, rest)
        made = converted(grad, FLOAT32) if grad.dtype in HALF_TYPES else grad
        for dim, size, scale in zip(range(grad.ndim - spatial, grad.ndim), tuple(input_size)[2:], scales, strict=True):
            neighbours = resize._neighbours(mode, size, grad.shape[dim], scale, align, resize._real(grad.dtype))
            made = _spread_back(made, dim, size, neighbours)
        return converted(made, grad.dtype)

    def by_factors(input: NpuArray, output_size: Any, *rest: Any) -> NpuArray:
        *align, factors = rest
        if output_size is None:
            output_size = [int(float(n) * f) for n, f in zip(input.shape[2:], factors, strict=True)]
        return kernel(input, output_size, *align,
                      *([None] * spatial if factors is None else [float(f) for f in factors]))

    return kernel, backward, by_factors


for _name, _mode, _spatial in (
    *[(f"upsample_nearest{n}d", "nearest", n) for n in SPATIAL],
    *[(f"_upsample_nearest_exact{n}d", "exact", n) for n in SPATIAL],
    ("upsample_linear1d", "linear", 1), ("upsample_bilinear2d", "linear", 2), ("upsample_trilinear3d", "linear", 3),
    ("upsample_bicubic2d", "cubic", 2),
):
    COMPOSED[_name], COMPOSED[f"{_name}_backward"], COMPOSED[f"{_name}.vec"] = _resized(_name, _mode, _spatial)
