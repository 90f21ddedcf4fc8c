"""Averages the parameters of all ranks every few steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ...._autograd.grad_mode import no_grad
from ...._dispatch.namespace import aten
from ...._tensor import Tensor
from ..._collectives import all_reduce
from ..._groups import ProcessGroup, resolve

__all__ = ["ModelAverager", "PeriodicModelAverager"]


def _parameters(params: Iterable[Any]) -> list[Tensor]:
    """Those with a gradient, of a list of parameters or of an optimizer's groups."""
    found: list[Tensor] = []
    for one in params:
        found += one["params"] if isinstance(one, dict) else [one]
    return [one for one in found if one.grad is not None]


class ModelAverager(ABC):
    """Averages parameters after a step."""

    def __init__(self, process_group: Any = None) -> None:
        members = resolve(process_group)
        if members is None:
            raise ValueError("ModelAverager: this process is not in the group")
        self.process_group: ProcessGroup = members
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Called after each step."""


class PeriodicModelAverager(ModelAverager):
    """Averages every `period` steps, from step `warmup_steps` on."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average over all ranks, if this is a step for it."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            with no_grad():
                chosen = _parameters(params)
                if chosen:
                    flat = aten.cat([one.detach().reshape(-1) for one in chosen])
                    flat.div_(self.process_group.size())
                    all_reduce(flat, group=self.process_group)
                    for one, part in zip(chosen, aten.split(flat, [one.numel() for one in chosen])):
                        one.detach().copy_(part.view(one.shape))
        self.step += 1
