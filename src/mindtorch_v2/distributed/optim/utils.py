"""`torch.distributed.optim.utils`: the functional counterparts of optimizer classes."""

from __future__ import annotations

from typing import Any

from .functional import (
    _Functional,
    _FunctionalAdadelta,
    _FunctionalAdagrad,
    _FunctionalAdam,
    _FunctionalAdamax,
    _FunctionalAdamW,
    _FunctionalRMSprop,
    _FunctionalRprop,
    _FunctionalSGD,
)

__all__ = ["as_functional_optim", "functional_optim_map", "register_functional_optim"]

_CLASSES: tuple[type[_Functional], ...] = (
    _FunctionalAdagrad, _FunctionalAdam, _FunctionalAdamW, _FunctionalSGD, _FunctionalAdadelta, _FunctionalRMSprop,
    _FunctionalRprop, _FunctionalAdamax)
functional_optim_map: dict[Any, Any] = {one.optimizer: one for one in _CLASSES}


def register_functional_optim(key: Any, optim: Any) -> None:
    """Add a class under a key that is not there yet."""
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: type, *args: Any, **kwargs: Any) -> Any:
    """The counterpart of an optimizer class, without parameters."""
    if optim_cls not in functional_optim_map:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return functional_optim_map[optim_cls]([], *args, **kwargs, _allow_empty_param_list=True)
