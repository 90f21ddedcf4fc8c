"""Padding as modules: one class per mode and number of dimensions."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from ._homes import elsewhere
from .module import Module


class _Pad(Module):
    """Pads the last `spatial` dimensions; `padding` is one number, or two per dimension."""

    mode = "constant"
    spatial = 0
    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.spatial) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The padding and its value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a value."""

    spatial = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with a value."""

    spatial = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with a value."""

    spatial = 3


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The padding."""
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Pads the last dimension with zeros."""


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Pads the last two dimensions with zeros."""


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Pads the last three dimensions with zeros."""


class ReflectionPad1d(_Pad):
    """Pads the last dimension with its mirror image, the edge not repeated."""

    mode, spatial = "reflect", 1


class ReflectionPad2d(_Pad):
    """Pads the last two dimensions with their mirror image, the edge not repeated."""

    mode, spatial = "reflect", 2


class ReflectionPad3d(_Pad):
    """Pads the last three dimensions with their mirror image, the edge not repeated."""

    mode, spatial = "reflect", 3


class ReplicationPad1d(_Pad):
    """Pads the last dimension with its edge."""

    mode, spatial = "replicate", 1


class ReplicationPad2d(_Pad):
    """Pads the last two dimensions with their edges."""

    mode, spatial = "replicate", 2


class ReplicationPad3d(_Pad):
    """Pads the last three dimensions with their edges."""

    mode, spatial = "replicate", 3


class _CircularPadNd(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        if input.ndim not in (self.spatial + 1, self.spatial + 2):
            raise ValueError(f"expected {self.spatial + 1}D or {self.spatial + 2}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension as if it were a ring."""

    spatial = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions as if they were rings."""

    spatial = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions as if they were rings."""

    spatial = 3


__getattr__ = elsewhere(__name__)
