"""`torch._refs`: PyTorch's second form of ops, written in simpler ones. Here an op is its own reference."""

from __future__ import annotations

import importlib
from typing import Any

from .._tensor import Tensor

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
        return getattr(package, name)
    if not hasattr(Tensor, name) and hasattr(Tensor, f"{name}_"):
        # Random numbers fill tensors in place only; a reference fills a copy.
        return lambda self, *args, **kwargs: getattr(self.clone(), f"{name}_")(*args, **kwargs)
    return getattr(Tensor, name)
