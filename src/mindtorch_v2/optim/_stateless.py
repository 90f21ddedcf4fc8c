"""`swap_in_optimizer_params_and_state`: run an optimizer on other parameters and another state for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor import Tensor
from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

NAME = "swap_in_optimizer_params_and_state"


def _checked(optimizer: Optimizer, given: Any) -> tuple[dict[Any, Any], list[dict[str, Any]]]:
    """State and groups of a state dict, if it has the optimizer's form."""
    if not optimizer.state:
        raise RuntimeError(f"{NAME} requires initialized optimizer state; take a step first")
    if not isinstance(given, dict):
        raise RuntimeError(f"{NAME} requires a state dict of an optimizer, got {type(given).__name__}")
    state, groups = given.get("state"), given.get("param_groups")
    if not isinstance(state, dict):
        raise RuntimeError(f"{NAME} requires swapin_optim_state['state'] to be a dict by parameter ids, got "
                           f"{type(state).__name__}")
    if not isinstance(groups, list):
        raise RuntimeError(f"{NAME} requires swapin_optim_state['param_groups'] to be a list, got "
                           f"{type(groups).__name__}")
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer: "
                           f"{len(groups)}, not {len(optimizer.param_groups)}")
    for index, (live, group) in enumerate(zip(optimizer.param_groups, groups)):
        if live.keys() != group.keys():
            raise RuntimeError(f"{NAME} requires param group keys to exactly match the live optimizer's, for group "
                               f"{index}. Keys only in swap-in: {sorted(group.keys() - live.keys())}. Keys only in "
                               f"live: {sorted(live.keys() - group.keys())}.")
        if len(live["params"]) != len(group["params"]):
            raise RuntimeError(f"swapin_optim_state param group {index} has a different number of params than the "
                               f"live optimizer param group: {len(group['params'])}, not {len(live['params'])}")
    known = {number for group in groups for number in group["params"]}
    extra = [number for number in state if number not in known]
    if extra:
        raise RuntimeError(f"{NAME} requires swapin_optim_state['state'] to be keyed by the ids in its param groups; "
                           f"got extra keys {extra}")
    return state, groups


@contextmanager
def swap_in_optimizer_params_and_state(optimizer: Optimizer, swapin_parameters: dict[str, Tensor],
                                       swapin_optim_state: dict[str, Any]) -> Iterator[None]:
    """Inside, the optimizer has other parameters, in the order of its own, and another state; then its own again.

    Changes of tensors in place reach the given state; new entries do not.

    >>> import mindtorch_v2 as torch
    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = torch.optim.SGD([weight], lr=1.0, momentum=0.9)
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> other = torch.nn.Parameter(torch.full((2,), 5.0))
    >>> other.grad = torch.ones(2)
    >>> with swap_in_optimizer_params_and_state(optimizer, {"weight": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> other.tolist(), weight.tolist()
    ([3.0999999046325684, 3.0999999046325684], [0.0, 0.0])
    """
    state, groups = _checked(optimizer, swapin_optim_state)
    tensors = list(swapin_parameters.values())
    if len(tensors) < sum(len(group["params"]) for group in groups):
        raise RuntimeError(f"{NAME} requires one tensor for each parameter, in the order of optimizer.param_groups")
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    swapped: defaultdict[Tensor, Any] = defaultdict(dict)
    try:
        start = 0
        for live, group in zip(optimizer.param_groups, groups):
            params = tensors[start:start + len(group["params"])]
            start += len(params)
            live.update(group, params=params)
            for param, number in zip(params, group["params"]):
                swapped[param] = dict(state.get(number, {}))
        optimizer.state = swapped
        yield
    finally:
        for live, own in zip(optimizer.param_groups, own_groups):
            live.clear()
            live.update(own)
        optimizer.state = own_state
