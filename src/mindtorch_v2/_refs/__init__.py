"""`torch._refs`: PyTorch's second form of ops, written in simpler ones. Here an op is its own reference."""

from __future__ import annotations

import importlib
from typing import Any

from .._dispatch.namespace import aten
from .._dtype import DType
from .._shape import wrap_dim
from .._tensor import Tensor
from ._out import reference_of

PACKAGE = __name__.rpartition(".")[0]
_SUBMODULES = frozenset({"_conversions", "fft", "linalg", "nn", "special"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("__"):
        raise AttributeError(f"module 'torch._refs' has no attribute {name!r}")
    if name == "T":
        return getattr(Tensor, "t")  # noqa: B009 (methods are hung on the class)
    package = importlib.import_module(PACKAGE)
    if hasattr(package, name):
        return reference_of(package, name)
    if not hasattr(Tensor, name) and hasattr(Tensor, f"{name}_"):
        # Random numbers fill tensors in place only; a reference fills a copy.
        return lambda self, *args, **kwargs: getattr(self.clone(), f"{name}_")(*args, **kwargs)
    return reference_of(Tensor, name)


def sum(a: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None) -> Tensor:
    """`torch.sum`, which may keep the dimensions of a sum over all of them."""
    return aten.sum__dim_IntList(a, dim, keepdim, dtype=dtype, out=out)


def mean(a: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, out: Any = None) -> Tensor:
    """`torch.mean`, which may keep the dimensions of a mean over all of them."""
    return aten.mean__dim(a, dim, keepdim, dtype=dtype, out=out)


def prod(a: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """`torch.prod`, which here takes several dimensions."""
    dims = [wrap_dim(one, a.ndim) for one in ((dim,) if isinstance(dim, int) else dim or range(a.ndim))]
    if len(set(dims)) < len(dims):
        raise RuntimeError("duplicate value in the list of dims")
    if not a.ndim:
        return aten.prod(a, dtype=dtype)
    for one in sorted(dims, reverse=True):
        a = aten.prod(a, one, keepdim, dtype=dtype)
    return a
