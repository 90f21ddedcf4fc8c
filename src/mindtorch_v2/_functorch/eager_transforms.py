"""`torch._functorch.eager_transforms`: the transforms of `torch.func` under their older address."""

from __future__ import annotations

from typing import Any

from ..func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..func.gradients import Argnums, _chosen

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _slice_argnums(args: tuple[Any, ...], argnums: Argnums, as_tuple: bool = True) -> Any:
    """The chosen arguments; a single one as it is, if asked."""
    chosen = tuple(args[number] for number in _chosen(argnums, args))
    return chosen[0] if isinstance(argnums, int) and not as_tuple else chosen
