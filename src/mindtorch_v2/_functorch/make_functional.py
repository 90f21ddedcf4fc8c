"""Modules as functions of their parameters, in functorch's older form.

>>> import mindtorch_v2 as torch
>>> from mindtorch_v2._functorch.make_functional import make_functional
>>> function, params = make_functional(torch.nn.Linear(2, 1))
>>> function(params, torch.ones(3, 2)).shape
torch.Size([3, 1])
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch.namespace import aten
from ..func.modules import functional_call
from ..nn.modules.module import Module

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functional_init",
           "functional_init_with_buffers", "make_functional", "make_functional_with_buffers"]


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and buffers."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """The model's output with these."""
        given = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(Module):
    """A module that is called with its parameters."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, param_names

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """The model's output with these."""
        return functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


def _taken_apart(model: Module, detach: bool) -> tuple[Module, dict[str, Any], dict[str, Any]]:
    """A copy of a model without memory of its own, and copies of its parameters and buffers by name."""
    copied = copy.deepcopy(model)
    params, buffers = dict(copied.named_parameters()), dict(copied.named_buffers())
    hollow = copy.deepcopy(copied).to("meta")
    return hollow, {name: one.detach() if detach else one for name, one in params.items()}, buffers


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """A function of parameters and inputs, and the parameters; `torch.func.functional_call` is the newer form."""
    hollow, params, buffers = _taken_apart(model, disable_autograd_tracking)
    if buffers:
        raise RuntimeError("make_functional(model): `model` has buffers. Please use "
                           "make_functional_with_buffers(model) instead.")
    return FunctionalModule(hollow, tuple(params)), tuple(params.values())


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> tuple[
        FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """A function of parameters, buffers and inputs, the parameters, and the buffers."""
    hollow, params, buffers = _taken_apart(model, disable_autograd_tracking)
    made = FunctionalModuleWithBuffers(hollow, tuple(params), tuple(buffers))
    return made, tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...],
                                                                  tuple[Any, ...]]:
    """One function for several equal modules, and their parameters and buffers, stacked."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(model.training for model in models) or not any(model.training for model in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if not all(type(model) is type(models[0]) for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    parts = [make_functional_with_buffers(model) for model in models]
    params = [aten.stack(list(same)).detach() for same in zip(*(part[1] for part in parts), strict=True)]
    buffers = [aten.stack(list(same)) for same in zip(*(part[2] for part in parts), strict=True)]
    return parts[0][0], tuple(params), tuple(buffers)


def _several(model_class: type[Module], ensemble_shape: tuple[int, ...], device: Any,
             args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[list[Any]]]:
    """The function of a module's class, and the parameters and buffers of new modules, stacked if there are several."""
    if len(ensemble_shape) >= 2:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    count = ensemble_shape[0] if ensemble_shape else 1
    if count <= 0:
        raise ValueError(f"num_models {count} should be > 0")
    parts = [make_functional_with_buffers(model_class(*args, **kwargs).to(device)) for _ in range(count)]
    if not ensemble_shape:
        return parts[0][0], [list(parts[0][1]), list(parts[0][2])]
    return parts[0][0], [[aten.stack([one.detach() for one in same])
                          for same in zip(*(part[place] for part in parts), strict=True)] for place in (1, 2)]


def functional_init(model_class: type[Module], ensemble_shape: tuple[int, ...] = (),
                    device: Any = "cpu") -> Callable[..., Any]:
    """A function that makes modules of a class: `(weights, function of weights and inputs, names)`."""

    def initialise(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        function, (weights, buffers) = _several(model_class, ensemble_shape, device, args, kwargs)
        if buffers:
            raise RuntimeError("make_functional_deprecated_v1(model): `model` has buffers. Please use "
                               "functional_init_with_buffers instead.")

        def call(weights: Any, data: Any) -> Any:
            return function(weights, (), *data)

        return tuple(weights), call, function.param_names

    return initialise


def functional_init_with_buffers(model_class: type[Module], ensemble_shape: tuple[int, ...] = (),
                                 device: Any = "cpu") -> Callable[..., Any]:
    """The same with buffers: `(weights, buffers, function of both and inputs, names, names of buffers)`."""

    def initialise(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        function, (weights, buffers) = _several(model_class, ensemble_shape, device, args, kwargs)

        def call(weights: Any, buffers: Any, data: Any) -> Any:
            return function(weights, buffers, *data)

        return tuple(weights), tuple(buffers), call, function.param_names, function.buffer_names

    return initialise
