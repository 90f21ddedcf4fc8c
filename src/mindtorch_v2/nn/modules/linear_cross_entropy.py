"""A linear layer and cross entropy in one."""

from __future__ import annotations

import math
from typing import Any

from ..._device import DeviceLike
from ..._dtype import DType
from ..._tensor import Tensor
from .. import functional as F
from ._homes import settle
from .linear import Linear
from .loss import _Loss

__all__ = ["LinearCrossEntropyLoss"]


class LinearCrossEntropyLoss(_Loss):
    """The cross entropy of a linear layer's output."""

    weight: Tensor | None

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
                 device: DeviceLike = None, dtype: DType | None = None, reduction: str = "mean",
                 weight: Tensor | None = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
                 options: Any = None) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(reduction=reduction)
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.linear = Linear(in_features, num_classes * math.prod(self.out_features), bias=bias, device=device,
                             dtype=dtype)
        self.register_buffer("weight", weight)

    def reset_parameters(self) -> None:
        """Draw new first values."""
        self.linear.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        shape = (self.num_classes, *self.out_features)
        weight: Any = self.linear.weight
        bias: Any = self.linear.bias
        return F.linear_cross_entropy(
            input, weight.reshape((*shape, self.in_features)), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self) -> str:
        """Settings."""
        return (f"in_features={self.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
                f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
                f"label_smoothing={self.label_smoothing}, options={self.options}")


settle(__name__)
