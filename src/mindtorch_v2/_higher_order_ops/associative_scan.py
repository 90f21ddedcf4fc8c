"""`associative_scan`: the running result of a function over a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.namespace import aten
from .._shape import wrap_dim
from .._tensor import Tensor
from ..utils import _pytree

__all__ = ["associative_scan"]


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False,
                     combine_mode: str = "pointwise") -> Any:
    """What `combine_fn` makes of the first elements, of the first two, and so on, along a dimension of every tensor.

    The function is given whole stretches and must work element by element; log2(n) rounds do, since it is associative.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, shape = _pytree.tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if any(not isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("xs leaves must be a Tensor")
    dim = wrap_dim(dim, leaves[0].ndim)
    count = leaves[0].shape[dim]
    if any(leaf.ndim <= dim or leaf.shape[dim] != count for leaf in leaves):
        raise ValueError(f"All xs leaves must have the same size along dimension {dim}")
    done = [aten.flip(leaf, [dim]) for leaf in leaves] if reverse else list(leaves)
    step = 1
    while step < count:
        # What is known of the elements up to i-step joins what is known of the `step` elements up to i.
        before = [aten.slice(leaf, dim, 0, count - step) for leaf in done]
        here = [aten.slice(leaf, dim, step, count) for leaf in done]
        joined, _ = _pytree.tree_flatten(combine_fn(_pytree.tree_unflatten(before, shape),
                                                    _pytree.tree_unflatten(here, shape)))
        done = [aten.cat([aten.slice(leaf, dim, 0, step), new], dim) for leaf, new in zip(done, joined)]
        step *= 2
    if reverse:
        done = [aten.flip(leaf, [dim]) for leaf in done]
    return _pytree.tree_unflatten(done, shape)
