"""Parameter groups: what an optimizer accepts, and how it writes them into a state dict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor


class _RequiredParameter:
    """Default of an option that every parameter group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def as_groups(params: Any) -> list[dict[str, Any]]:
    """The groups a constructor was given: an iterable of tensors, of (name, tensor) pairs or of dicts."""
    if isinstance(params, Tensor):
        raise TypeError(
            "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
            f"{type(params).__name__}"
        )
    groups = list(params)
    if not groups:
        raise ValueError("optimizer got an empty parameter list")
    return groups if isinstance(groups[0], dict) else [{"params": groups}]


def listed(params: Any) -> list[Any]:
    """A group's parameters as a list."""
    if isinstance(params, Tensor):
        return [params]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    return list(params)


def split_names(items: list[Any]) -> tuple[list[Any], list[str] | None]:
    """Parameters and, if they came as (name, parameter) pairs, their names."""
    named = [isinstance(item, tuple) for item in items]
    if not any(named):
        return items, None
    if not all(named):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [item[1] for item in items], [item[0] for item in items]


def complete_group(group: Any, defaults: dict[str, Any], present: list[dict[str, Any]]) -> dict[str, Any]:
    """Check a new group against the present ones and fill in the options it leaves out."""
    if not isinstance(group, dict):
        raise TypeError(f"param_group must be a dict, but got {type(group)}")
    parameters, names = split_names(listed(group["params"]))
    group["params"] = parameters
    if names is not None:
        group["param_names"] = names
    check_parameters(parameters, defaults)
    for option, value in defaults.items():
        if value is required and option not in group:
            raise ValueError(f"parameter group didn't specify a value of required optimization parameter {option}")
        group.setdefault(option, value)
    if len({id(p) for p in parameters}) != len(parameters):
        warnings.warn(
            "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
            "see github.com/pytorch/pytorch/issues/40967 for more information",
            stacklevel=4,
        )
    taken = {id(p) for other in present for p in other["params"]}
    if any(id(p) in taken for p in parameters):
        raise ValueError("some parameters appear in more than one parameter group")
    if present and ("param_names" in group) != ("param_names" in present[0]):
        given = "with" if "param_names" in group else "without"
        raise ValueError(
            "all optimizer param groups should be with/without names. "
            f"cannot add param group {given} names to the optimizer"
        )
    return group


def check_parameters(parameters: list[Any], defaults: dict[str, Any]) -> None:
    """Everything in a group is a tensor that nothing was recorded for."""
    for parameter in parameters:
        if not isinstance(parameter, Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
        if not defaults.get("differentiable") and not (parameter.is_leaf or parameter.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")


def pack(groups: list[dict[str, Any]], state: dict[Any, Any]) -> dict[str, Any]:
    """State and groups with parameters replaced by their number in order of first appearance."""
    numbers: dict[int, int] = {}
    packed_groups = []
    for group in groups:
        for parameter in group["params"]:
            numbers.setdefault(id(parameter), len(numbers))
        packed = {option: value for option, value in group.items() if option != "params"}
        packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
        packed_groups.append(packed)
    packed_state = {numbers[id(k)] if isinstance(k, Tensor) else k: value for k, value in state.items()}
    return {"state": packed_state, "param_groups": packed_groups}


def check_packed(present: list[dict[str, Any]], saved: list[dict[str, Any]]) -> None:
    """A state dict fits an optimizer if it has the same number of groups, each of the same length."""
    if len(present) != len(saved):
        raise ValueError("loaded state dict has a different number of parameter groups")
    if any(len(mine["params"]) != len(theirs["params"]) for mine, theirs in zip(present, saved, strict=True)):
        raise ValueError(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
        )


def fit_value(value: Any, convert: Callable[..., Tensor], key: Any = None) -> Any:
    """A loaded state value with its tensors, however deep they are, as `convert(tensor, key=…)` makes them."""
    if isinstance(value, Tensor):
        return convert(value, key=key)
    if isinstance(value, dict):
        return {k: fit_value(v, convert, k) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(fit_value(v, convert, key) for v in value)
    return value
