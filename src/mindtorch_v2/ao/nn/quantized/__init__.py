"""`torch.ao.nn.quantized`: arithmetic as a layer, which quantization would observe."""

from __future__ import annotations

from collections.abc import Sequence

from ...._dispatch.namespace import aten
from ...._outside import attributes
from ...._tensor import Tensor
from ....nn.modules.linear import Identity
from ....nn.modules.module import Module
from ....nn.modules.pooling import MaxPool2d

__all__ = ["FloatFunctional", "MaxPool2d"]

__getattr__ = attributes("ao.nn.quantized", globals())


class FloatFunctional(Module):
    """Functions of floating point tensors, each passed through a layer that a prepared model replaces."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Not for calling: use its methods."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`x + y`."""
        return self.activation_post_process(aten.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x + y`, which is not observed."""
        return aten.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x * y`."""
        return self.activation_post_process(aten.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x * y`, which is not observed."""
        return aten.mul(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors joined."""
        return self.activation_post_process(aten.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """`relu(x + y)`."""
        return self.activation_post_process(aten.relu(aten.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x @ y`."""
        return self.activation_post_process(aten.matmul(x, y))
