"""`ZeroRedundancyOptimizer`: each rank keeps the optimizer's state of some parameters, and steps for all ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._tensor import Tensor
from ...optim.optimizer import Optimizer
from .. import _collectives as collectives
from .. import _objects as objects
from .._groups import default_group, resolve
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer of a given class, whose state is divided among the ranks.

    Parameters go to the rank that has the fewest elements so far, the largest first. After a step each rank sends its
    parameters to the others.
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp=True is not supported by this runtime")
        members = resolve(process_group) if process_group is not None else default_group()
        if members is None:
            raise ValueError("ZeroRedundancyOptimizer: this process is not in the group")
        Joinable.__init__(self)
        self.process_group, self.rank, self.world_size = members, members.rank(), members.size()
        self._optimizer_class, self._optimizer_defaults = optimizer_class, defaults
        self._all_states: list[dict[str, Any]] | None = None
        self._owner: dict[int, int] = {}
        self._load = [0] * self.world_size
        self.optim: Any = None
        super().__init__(params, defaults)
        self._make_own()

    def _divide(self, group: dict[str, Any]) -> None:
        for parameter in sorted(group["params"], key=lambda one: -one.numel()):
            rank = self._load.index(min(self._load))
            self._owner[id(parameter)] = rank
            self._load[rank] += parameter.numel()

    def _make_own(self) -> None:
        """The optimizer of this rank's parameters; a group without any keeps its place."""
        for group in self.param_groups:
            self._divide(group)
        self.optim = self._optimizer_class(self._own_groups(), **self._optimizer_defaults)
        for group, own in zip(self.param_groups, self.optim.param_groups):
            for name, value in own.items():
                group.setdefault(name, value)

    def _own_groups(self) -> list[dict[str, Any]]:
        return [{**{name: value for name, value in group.items() if name != "params"},
                 "params": [one for one in group["params"] if self._owner[id(one)] == self.rank]}
                for group in self.param_groups]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, divided like the others."""
        super().add_param_group(param_group)
        if self.optim is not None:
            group = self.param_groups[-1]
            self._divide(group)
            self.optim.add_param_group(self._own_groups()[-1])

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Step this rank's parameters, and get those of the others."""
        Join.notify_join_context(self)
        for group, own in zip(self.param_groups, self.optim.param_groups):
            own.update({name: value for name, value in group.items() if name != "params"})
        loss = self.optim.step(closure=closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        self._share()
        return loss

    def _share(self) -> None:
        works = []
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    works.append(collectives.broadcast(parameter.detach(), group=self.process_group,
                                                       group_src=self._owner[id(parameter)], async_op=True))
        for work in works:
            if work is not None:
                work.wait()

    # -- state -----------------------------------------------------------------------------------------------------

    def _numbers(self) -> dict[int, int]:
        places: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                places.setdefault(id(parameter), len(places))
        return places

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect all states on one rank, which may then call `state_dict`."""
        places = self._numbers()
        own = {places[id(parameter)]: state for parameter, state in self.optim.state.items()}
        gathered: list[Any] | None = [None] * self.world_size if self.rank == to else None
        objects.gather_object(own, gathered, group=self.process_group, group_dst=to)
        self._all_states = gathered

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as an optimizer of one process has it."""
        if self._all_states is None:
            raise RuntimeError(f"Optimizer state has not been consolidated on this rank. Please call "
                               f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save "
                               "the global state.")
        places = self._numbers()
        state = {number: value for one in self._all_states for number, value in one.items()}
        groups = [{**{name: value for name, value in group.items() if name != "params"},
                   "params": [places[id(parameter)] for parameter in group["params"]]} for group in self.param_groups]
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the whole state; keep what belongs to this rank's parameters."""
        by_number = {number: parameter for group in self.param_groups for number, parameter in
                     zip(self._group_numbers(group), group["params"])}
        for group, saved in zip(self.param_groups, state_dict["param_groups"]):
            group.update({name: copy.deepcopy(value) for name, value in saved.items() if name != "params"})
        for number, value in state_dict["state"].items():
            parameter = by_number[int(number)]
            if self._owner[id(parameter)] == self.rank:
                self.optim.state[parameter] = {name: one.clone() if isinstance(one, Tensor) else copy.deepcopy(one)
                                               for name, one in value.items()}

    def _group_numbers(self, group: dict[str, Any]) -> list[int]:
        places = self._numbers()
        return [places[id(parameter)] for parameter in group["params"]]

    # -- join ------------------------------------------------------------------------------------------------------

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """A rank without inputs steps too, so that the others get its parameters."""
        return _StepAlong(self)

    @property
    def join_device(self) -> Any:
        """Where the parameters are."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group of the optimizer."""
        return self.process_group


class _StepAlong(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """One step of the others."""
        self.optimizer.step()
