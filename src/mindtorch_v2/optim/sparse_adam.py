"""SparseAdam, for gradients that this runtime does not have."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor

__all__ = ["SparseAdam"]


class SparseAdam:
    """Cannot be made: sparse tensors, and so sparse gradients, do not exist in this runtime."""

    __refused__ = "torch.optim.SparseAdam steps along sparse gradients only, and this runtime has no sparse tensors"

    def __init__(self, params: Any, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, maximize: bool = False) -> None:
        raise NotImplementedError("torch.optim.SparseAdam steps along sparse gradients only, and this runtime has no "
                                  "sparse tensors; embeddings have dense gradients here, for which Adam is made")
