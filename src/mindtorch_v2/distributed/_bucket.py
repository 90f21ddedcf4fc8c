"""`GradBucket`: gradients that are reduced together."""

from __future__ import annotations

from typing import Any

from .._dispatch.namespace import aten
from .._tensor import Tensor

__all__ = ["GradBucket"]


class GradBucket:
    """Gradients that are reduced together, as a communication hook sees them."""

    def __init__(self, index: int, parameters: list[Tensor]) -> None:
        self._index = index
        self._is_last = False
        self._parameters = parameters
        self._sizes = [parameter.numel() for parameter in parameters]
        self._flat = aten.zeros(sum(self._sizes), dtype=parameters[0].dtype, device=parameters[0].device)
        self.views = self._cut(self._flat)
        self.missing = 0
        self.waited: Any = None  # the work or the future of its reduction

    def _cut(self, flat: Tensor) -> list[Tensor]:
        pieces, place = [], 0
        for parameter, size in zip(self._parameters, self._sizes):
            pieces.append(flat[place:place + size].view(parameter.shape))
            place += size
        return pieces

    def index(self) -> int:
        """Its number; buckets are reduced in this order."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last one of a backward."""
        return self._is_last

    def buffer(self) -> Tensor:
        """All its gradients, flat."""
        return self._flat

    def set_buffer(self, buffer: Tensor) -> None:
        """Put another tensor of the same size in the place of the buffer."""
        if buffer.numel() != self._flat.numel():
            raise ValueError(f"set_buffer: a tensor of {buffer.numel()} elements cannot replace one of "
                             f"{self._flat.numel()}")
        self._flat = buffer.reshape(-1)
        self.views = self._cut(self._flat)

    def gradients(self) -> list[Tensor]:
        """Its gradients, by parameter."""
        return list(self.views)

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients it holds."""
        return list(self._parameters)
