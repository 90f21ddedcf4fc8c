"""The state of a model and its optimizers, both by the names of parameters.

A model is whole in each process here, so `full_state_dict` changes nothing.

>>> import mindtorch_v2 as torch
>>> model = torch.nn.Linear(1, 1)
>>> state = get_optimizer_state_dict(model, torch.optim.SGD(model.parameters(), lr=0.1))
>>> state["param_groups"][0]["params"]
['weight', 'bias']
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._construct import tensor
from ..._tensor import Tensor
from ...nn import Module
from ...nn.parallel import DataParallel, DistributedDataParallel
from ...optim import Optimizer

State = dict[str, Any]


@dataclass
class StateDictOptions:
    """What a state has, and how strictly it is loaded."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0:
        if not options.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
        raise NotImplementedError("broadcast_from_rank0: this runtime loads a state in each process; let every rank "
                                  "read the file")
    return options


def _plain(name: str) -> str:
    """A name without the parts that wrappers of a module put into it."""
    return ".".join(part for part in name.split(".") if part != "_orig_mod")


def _inside(model: Module) -> Module:
    """The module of a program, which a wrapper may hold."""
    return _inside(model.module) if isinstance(model, (DataParallel, DistributedDataParallel)) else model


def _offloaded(value: Any, options: StateDictOptions) -> Any:
    """A value as it is in a state: without history, and on the host if that is wished."""
    if isinstance(value, Tensor):
        return value.detach().cpu() if options.cpu_offload else value.detach()
    if isinstance(value, dict):
        return {key: _offloaded(one, options) for key, one in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    whole = options.cpu_offload or options.full_state_dict  # PyTorch gathers such values again, into lists
    parts = [_offloaded(one, options) for one in value]
    return tuple(parts) if isinstance(value, tuple) and not whole else parts


# -- the model -------------------------------------------------------------------------------------------------------


def get_model_state_dict(model: Module, *, submodules: set[Module] | None = None,
                         options: StateDictOptions | None = None) -> State:
    """The model's state; of some of its modules, if they are given."""
    options = _checked(options)
    model = _inside(model)
    found = model.state_dict()
    if options.ignore_frozen_params:
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if not parameter.requires_grad:
                found.pop(name, None)
    if submodules:
        warnings.warn("Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5. Take "
                      "what you need from the whole state.", FutureWarning, stacklevel=2)
        kept = {}
        for prefix, module in model.named_modules():
            if module in submodules:
                start = f"{prefix}." if prefix else ""
                kept.update({name if options.keep_submodule_prefixes else name[len(start):]: value
                             for name, value in found.items() if name.startswith(start)})
        found = kept
    for name in list(found):
        found[_plain(name)] = _offloaded(found.pop(name), options)
    return found


def set_model_state_dict(model: Module, model_state_dict: dict[Any, Any], *,
                         options: StateDictOptions | None = None) -> Any:
    """Load a model's state, by name or by module; returns the names that were missing and those that were too many."""
    options = _checked(options)
    model = _inside(model)
    if model_state_dict and isinstance(next(iter(model_state_dict)), Module):
        prefixes = {module: f"{prefix}." if prefix else "" for prefix, module in model.named_modules()}
        model_state_dict = {prefixes[module] + name: value for module, part in model_state_dict.items()
                            for name, value in part.items()}
    own = {_plain(name): name for name in model.state_dict()}
    return model.load_state_dict({own.get(_plain(name), name): value for name, value in model_state_dict.items()},
                                 strict=options.strict)


# -- its optimizers --------------------------------------------------------------------------------------------------


def get_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *,
                             submodules: set[Module] | None = None,
                             options: StateDictOptions | None = None) -> State:
    """The optimizers' state: parameters have their names. A new optimizer gets the state that it begins with."""
    options = _checked(options)
    if submodules:
        raise NotImplementedError("the state of an optimizer for some modules only is not supported")
    several = _several(optimizers)
    if not several:
        return {}
    names = _names(model)
    whole: State = {"state": {}, "param_groups": []}
    for optimizer in several:
        _begin(optimizer)
        found = optimizer.state_dict()
        by_number = {number: names[parameter] for number, parameter in _numbered(optimizer, found)}
        whole["state"].update({by_number[number]: value for number, value in found["state"].items()})
        whole["param_groups"] += [{**group, "params": [by_number[number] for number in group["params"]]}
                                  for group in found["param_groups"]]
    whole = _offloaded(whole, options)
    return _flat(whole) if options.flatten_optimizer_state_dict else whole


def set_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: State, *,
                             options: StateDictOptions | None = None) -> None:
    """Load the state that `get_optimizer_state_dict` gave; what has no parameter in the model is left out."""
    _checked(options)
    names = _names(model)
    for optimizer in _several(optimizers):
        _begin(optimizer)
        found = optimizer.state_dict()
        by_number = {number: names[parameter] for number, parameter in _numbered(optimizer, found)}
        given = (optim_state_dict if "param_groups" in optim_state_dict else
                 _unflattened(optim_state_dict, found, by_number))
        groups = [_group_of(group, [by_number[number] for number in group["params"]], given)
                  for group in found["param_groups"]]
        state = {number: given["state"][name] for number, name in by_number.items() if name in given["state"]}
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def _group_of(group: State, names: list[str], given: State) -> State:
    """A group of the optimizer with the settings of the given group that has its parameters."""
    for other in given["param_groups"]:
        if names and set(names) & {_plain(name) for name in other["params"]}:
            return {**group, **other, "params": group["params"]}
    return group


def _several(optimizers: Optimizer | Iterable[Optimizer]) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _names(model: Module) -> dict[Any, str]:
    return {parameter: _plain(name) for name, parameter in _inside(model).named_parameters()}


def _numbered(optimizer: Optimizer, found: State) -> Iterable[tuple[int, Any]]:
    """The numbers that the optimizer's own state has, and their parameters."""
    for group, written in zip(optimizer.param_groups, found["param_groups"], strict=True):
        yield from zip(written["params"], group["params"], strict=True)


def _begin(optimizer: Optimizer) -> None:
    """Give a new optimizer its state, by a step of length zero with gradients of zero."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if any(parameter.grad is not None for parameter in parameters):
        return
    rates = [group["lr"] for group in optimizer.param_groups if "lr" in group]
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = parameter.detach().new_zeros(parameter.shape)
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
    with no_grad():
        optimizer.step(closure=None)
    for group, rate in zip((g for g in optimizer.param_groups if "lr" in g), rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


# -- an optimizer's state without levels -------------------------------------------------------------------------------


def _flat(whole: State) -> State:
    flat = {f"state.{name}.{key}": value for name, state in whole["state"].items() for key, value in state.items()}
    for group in whole["param_groups"]:
        flat.update({f"param_groups.{name}.{key}": value for name in group["params"]
                     for key, value in group.items() if key != "params"})
    return flat


def _unflattened(flat: State, found: State, by_number: dict[int, str]) -> State:
    state: dict[str, State] = {}
    for number, own in found["state"].items():
        name = by_number[number]
        state[name] = {key: flat[f"state.{name}.{key}"] for key in own}
    groups = []
    for group in found["param_groups"]:
        names = [by_number[number] for number in group["params"]]
        groups.append({"params": names, **{
            key: flat.get(f"param_groups.{names[0]}.{key}", value) if names else value
            for key, value in group.items() if key != "params"}})
    return {"state": state, "param_groups": groups}


# -- both ------------------------------------------------------------------------------------------------------------


def get_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *,
                   submodules: set[Module] | None = None,
                   options: StateDictOptions | None = None) -> tuple[State, State]:
    """The model's state, and its optimizers'."""
    return (get_model_state_dict(model, submodules=submodules, options=options),
            get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options))


def set_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: State,
                   optim_state_dict: State, options: StateDictOptions | None = None) -> Any:
    """Load the model's state and its optimizers'."""
    loaded = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return loaded


__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
           "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"]
