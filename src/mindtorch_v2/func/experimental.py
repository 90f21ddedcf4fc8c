"""`functorch.experimental`: names that the package `functorch` has besides those of `torch.func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _higher_order_ops as control_flow
from .batching import vmap
from .forward import jacfwd, jvp
from .functionalizing import functionalize
from .gradients import hessian
from .modules import replace_all_batch_norm_modules_

__all__ = ["chunk_vmap", "control_flow", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]


def chunk_vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error",
               chunks: int = 2) -> Callable[..., Any]:
    """`vmap`. The pieces that functorch cuts a batch into save memory there; here examples are computed one by one."""
    if chunks < 1:
        raise ValueError(f"chunk_vmap: chunks should be at least 1, got {chunks}")
    return vmap(func, in_dims, out_dims, randomness)
