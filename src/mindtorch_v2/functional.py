"""`torch.functional`: functions of `torch` under their second address."""

from __future__ import annotations

import importlib
import sys
from typing import Any

NAMES = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank",
    "tensordot", "unique", "unique_consecutive", "unravel_index",
)
__all__ = [*NAMES]


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return getattr(sys.modules[__package__ or ""], name)
    if name == "F":  # libraries take it from here by mistake
        return importlib.import_module("..nn.functional", __name__)
    raise AttributeError(f"module 'torch.functional' has no attribute '{name}'")
