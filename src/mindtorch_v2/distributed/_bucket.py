"""`GradBucket`: gradients that are reduced together; a sparse one is alone in its bucket."""

from __future__ import annotations

import enum
from typing import Any

from .._dispatch.namespace import aten
from .._dtype import int64
from .._tensor import Tensor

__all__ = ["BuiltinCommHookType", "GradBucket", "SparseBucket"]


class BuiltinCommHookType(enum.IntEnum):
    """The communication hooks that PyTorch has in C++."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2


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

    def take(self, position: int, gradient: Tensor | None, factor: float) -> None:
        """Store a gradient, times a factor, in its place; zeros if there is none."""
        view = self.views[position]
        if gradient is None:
            view.zero_()
        elif factor != 1.0:
            aten.mul(gradient, factor, out=view)
        elif gradient is not view:
            view.copy_(gradient)

    def clear(self) -> None:
        """Zeros for all gradients."""
        self._flat.zero_()

    def put(self, reduced: Tensor) -> None:
        """The buffer as a hook left it."""
        self._flat.copy_(reduced.view(-1))

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
        """Whether it is the last bucket of a backward."""
        return self._is_last

    def buffer(self) -> Tensor:
        """All its gradients, flat."""
        return self._flat

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the buffer by another tensor of the same size."""
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


class SparseBucket(GradBucket):
    """One sparse gradient. Its elements differ by rank and step, so it has no memory of its own."""

    def __init__(self, index: int, parameters: list[Tensor]) -> None:
        self._index, self._parameters = index, parameters
        self._is_last = False
        self.missing = 0
        self.waited: Any = None
        self.clear()

    def take(self, position: int, gradient: Tensor | None, factor: float) -> None:
        """The gradient times a factor; no elements if there is none."""
        if gradient is None:
            self.clear()
        else:
            self.put(gradient * factor)

    def clear(self) -> None:
        """No elements."""
        parameter = self._parameters[0]
        self.put(aten.sparse_coo_tensor(aten.zeros((1, 0), dtype=int64), parameter.detach()[:0], parameter.shape))

    def put(self, reduced: Tensor) -> None:
        """Another gradient."""
        self._flat = reduced
        self.views = [reduced]

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the buffer by another tensor of the same size."""
        self.put(buffer)
