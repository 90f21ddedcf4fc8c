"""Folding and unfolding; the convolutions themselves are ops that need no wrapper."""

from __future__ import annotations

from collections.abc import Sequence

from ..._dispatch.namespace import aten
from ..._tensor import Tensor

Sizes = int | Sequence[int]


def pair(value: Sizes) -> tuple[int, ...]:
    """Two numbers from one."""
    return (value, value) if isinstance(value, int) else tuple(value)


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Contents of sliding windows, one column per position."""
    return aten.im2col(input, pair(kernel_size), pair(dilation), pair(padding), pair(stride))


def fold(input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
         stride: Sizes = 1) -> Tensor:
    """Window contents added up at their places."""
    return aten.col2im(input, pair(output_size), pair(kernel_size), pair(dilation), pair(padding), pair(stride))
