"""Arguments that can have no gradient: PyTorch refuses those that want one."""

from __future__ import annotations

from ..._dispatch.state import THREAD
from ..._tensor import Tensor


def refuse_gradient(op: str, name: str, tensor: Tensor | None) -> None:
    """Raise if a tensor wants a gradient which the op, by its name in the graph, does not have."""
    if tensor is not None and tensor.requires_grad and THREAD.state.grad:
        raise RuntimeError(f"The function '{op}' is not differentiable with respect to argument '{name}'. This input "
                           "cannot have requires_grad True.")
