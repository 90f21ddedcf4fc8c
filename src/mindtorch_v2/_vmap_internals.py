"""`torch._vmap_internals`: the first `vmap`, which is deprecated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .func.batching import vmap as _vmap

__all__ = ["vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`torch.vmap`, with a warning."""
    warnings.warn("Please use torch.vmap instead of torch._vmap_internals.vmap.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)
