"""torch.nn: modules, parameters and what belongs to them."""

from __future__ import annotations

import importlib
from typing import Any

from .._dispatch.dispatcher import make_ready
from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403 (the list of modules is in one place, `modules.__all__`)
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *modules.__all__,
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]

# What nearly every training step uses, whatever its layers are.
make_ready("linear", "addmm", "t", "relu", "dropout", "native_layer_norm", "layer_norm", "embedding", "gelu",
           "cross_entropy_loss", "log_softmax.int", "_log_softmax", "nll_loss_nd", "nll_loss", "nll_loss_forward",
           "to.dtype", "ones_like", "empty_like", "fill_.Scalar", "nll_loss_backward", "_log_softmax_backward_data",
           "mm", "sum.dim_IntList", "view", "threshold_backward", "add.Tensor", "mul.Tensor", "detach")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments among `kwargs` that make tensors: given by themselves or in a dictionary of that name."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    if not kwargs.keys() <= simple | {"factory_kwargs"}:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - simple - {'factory_kwargs'}}")
    made = dict(kwargs.get("factory_kwargs", {}))
    for name in simple & kwargs.keys():
        if name in made:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        made[name] = kwargs[name]
    return made


# Loaded when first asked for: few programs touch them.
_SUBMODULES = frozenset({"attention", "common_types", "grad", "parallel"})
modules.__all__ += list(modules.LATE)  # only now: the list above imports what is in it
_LATE = {**{name: f"modules.{file}" for name, file in modules.LATE.items()}, "DataParallel": "parallel"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATE:
        found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
        return found
    raise AttributeError(f"module 'torch.nn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LATE})
