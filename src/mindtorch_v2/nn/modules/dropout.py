"""Dropout as modules."""

from __future__ import annotations

from ..._tensor import Tensor
from .. import functional as F
from ..functional.dropout import check_probability
from .module import Module


class _DropoutNd(Module):
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(p)
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Settings."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes elements at random while training."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes channels of `(N, C, L)` input at random while training."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes channels of `(N, C, H, W)` input at random while training."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes channels of `(N, C, D, H, W)` input at random while training."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance after `SELU`."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout."""
        return F.feature_alpha_dropout(input, self.p, self.training)
