"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from ._base import LRScheduler, _update_param_group_val
from ._plateau import ReduceLROnPlateau


def check_parts(name: str, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
    """The parts of a schedule belong to one optimizer and need nothing but `step()`."""
    for index, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {index} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {index} in the given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {index} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class _Combined(LRScheduler):
    """State dicts that hold those of the parts."""

    not_saved = ("optimizer", "_schedulers")
    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """The state, with the parts' states inside."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state and give each part its own."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            scheduler.load_state_dict(state)


class SequentialLR(_Combined):
    """One schedule after the other, changing at the milestones."""

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
                 last_epoch: int = -1) -> None:
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        check_parts("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to "
                f"be equal to {len(milestones)}"
            )
        self._schedulers = list(schedulers)
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each part took its first step when it was made; only the first one should have.
        for group in optimizer.param_groups:
            _update_param_group_val(group, "lr", group["initial_lr"])
        for scheduler in self._schedulers:
            undo_first_step(scheduler)
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            restart(scheduler)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def undo_first_step(scheduler: LRScheduler) -> None:
    """Set a schedule, and the schedules in it, back by one epoch."""
    for part in getattr(scheduler, "_schedulers", []):
        undo_first_step(part)
    if hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


def restart(scheduler: LRScheduler) -> None:
    """Begin a schedule at its epoch 0."""
    if type(scheduler).step is LRScheduler.step:
        scheduler._update_lr(0)
    elif isinstance(scheduler, _Combined):
        scheduler.step()
    else:
        scheduler.step(0)


class ChainedScheduler(_Combined):
    """Several schedules at once: every step takes a step of each."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        check_parts("ChainedScheduler", schedulers, optimizer)
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = self.present()

    def step(self) -> None:  # type: ignore[override]
        """Take a step of every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self.present()
