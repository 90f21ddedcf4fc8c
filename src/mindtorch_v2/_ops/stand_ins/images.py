"""Resizing with antialiasing: products with a matrix for each direction, which the host works out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends.cpu import resize_smooth as smooth
from ..._construct import tensor
from ..._dispatch.dtype_rules import unsupported
from ..._dtype import HALF_TYPES, float32, uint8
from ..._tensor import Tensor
from . import FORMULAS


def _applied(x: Tensor, matrices: list[np.ndarray]) -> Tensor:
    real = float32 if x._a.dtype in HALF_TYPES else x.dtype
    height, width = (tensor(np.ascontiguousarray(one), dtype=real, device=x.device) for one in matrices)
    return height.matmul(x.to(real).matmul(width.t())).to(x.dtype)


def _smooth(mode: str) -> None:
    name = f"_upsample_{mode}2d_aa"

    def forward(self: Tensor, output_size: Any, align_corners: bool, *scales: Any) -> Tensor:
        out = tuple(int(n) for n in output_size)
        smooth.check(name, self._a, out)
        if self.dtype is uint8:  # rounded in steps that products of floats do not make
            raise unsupported(name, self._a.dtype)
        return _applied(self, smooth.matrices(mode, self.shape[2:], out, scales, align_corners))

    def by_factors(self: Tensor, output_size: Any, align_corners: bool, factors: Any) -> Tensor:
        sizes, given = smooth.resolved(self.shape, output_size, factors)
        return forward(self, sizes, align_corners, *given)

    def backward(grad: Tensor, output_size: Any, input_size: Any, align_corners: bool, *scales: Any) -> Tensor:
        sizes = tuple(int(n) for n in input_size)[2:]
        found = smooth.matrices(mode, sizes, grad.shape[2:], scales, align_corners)
        return _applied(grad, [one.T for one in found])

    FORMULAS[name], FORMULAS[f"{name}.vec"], FORMULAS[f"{name}_backward"] = forward, by_factors, backward


for _mode in smooth.FILTERS:
    _smooth(_mode)
