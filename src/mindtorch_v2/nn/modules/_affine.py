"""What normalisation layers share: a weight that starts at one and a bias that starts at zero."""

from __future__ import annotations

from collections.abc import Sequence

from ..._device import DeviceLike
from ..._dispatch.namespace import aten
from ..._dtype import DType
from ..._tensor import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module


def parameter(shape: Sequence[int], device: DeviceLike, dtype: DType | None) -> Parameter:
    """A parameter of undefined contents, to be initialised."""
    return Parameter(aten.empty(tuple(shape), device=device, dtype=dtype))


class Affine(Module):
    """A module with an optional `weight` and `bias` of one shape."""

    weight: Tensor | None
    bias: Tensor | None

    def _make_affine(self, shape: Sequence[int], has_weight: bool, has_bias: bool, device: DeviceLike,
                     dtype: DType | None) -> None:
        self.register_parameter("weight", parameter(shape, device, dtype) if has_weight else None)
        self.register_parameter("bias", parameter(shape, device, dtype) if has_weight and has_bias else None)

    def reset_parameters(self) -> None:
        """Back to the first values."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)
