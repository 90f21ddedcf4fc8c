"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._dispatch.namespace import aten
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.utils.stateless import call_with

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """`module(*args, **kwargs)` with these tensors (in one dictionary, or several) in the place of its own.

    >>> import mindtorch_v2 as torch
    >>> layer = torch.nn.Linear(2, 1, bias=False)
    >>> torch.func.functional_call(layer, {"weight": torch.ones(1, 2)}, torch.ones(1, 2))
    tensor([[2.]])
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, Sequence):
        if not all(isinstance(one, dict) for one in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for one in given for name in one]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: tensor for one in given for name, tensor in one.items()}
    elif not isinstance(given, dict):
        raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
                         f"{type(given)}")
    return call_with(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and buffers of several equal modules, each stacked along a new first dimension."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tables: list[dict[str, Any]], leaves: bool) -> dict[str, Any]:
        made = {}
        for name in tables[0]:
            column = [table[name] for table in tables]
            wanted = [tensor.requires_grad for tensor in column]
            if leaves and any(wanted) and not all(wanted):
                raise RuntimeError(f"Expected {name} across models to have the same .requires_grad")
            whole = aten.stack(column)
            made[name] = whole.detach().requires_grad_(all(wanted)) if leaves else whole
        return made

    return (stacked([dict(m.named_parameters()) for m in models], True),
            stacked([dict(m.named_buffers()) for m in models], False))


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make all batch normalisations in a module use the batch's statistics, without running ones; in place."""
    for part in root.modules():
        if isinstance(part, _BatchNorm) and part.track_running_stats:
            part.running_mean = None
            part.running_var = None
            part.num_batches_tracked = None
            part.track_running_stats = False
    return root
