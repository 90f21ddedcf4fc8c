"""Ranks that run out of inputs take part in the collectives of the others, so that these do not wait."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np

from ..._tensor import wrap
from .._collectives import all_reduce
from .._lifecycle import get_rank, get_world_size
from .._work import Work

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """The work of a rank without inputs, for one object."""

    def main_hook(self) -> None:
        """In each step of the others: take part in its collectives."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """When all ranks have come to their end."""


class _Config:
    """Whether and how an object is in a join context."""

    def __init__(self, enable: bool = False, throws: bool = False, is_first: bool = False) -> None:
        self.enable, self.throw_on_early_termination, self.is_first_joinable = enable, throws, is_first


class Joinable:
    """An object that a join context can handle."""

    def __init__(self) -> None:
        self._join_config = _Config()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for this object while others continue."""
        raise NotImplementedError(f"{type(self).__name__} has no join_hook")

    @property
    def join_device(self) -> Any:
        """The device of its tensors."""
        raise NotImplementedError(f"{type(self).__name__} has no join_device")

    @property
    def join_process_group(self) -> Any:
        """Its group."""
        raise NotImplementedError(f"{type(self).__name__} has no join_process_group")


class Join:
    """`with Join([model]):` around a loop whose length differs by rank."""

    def __init__(self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False,
                 **kwargs: Any) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {id(one.join_process_group) for one in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables = joinables
        self._hooks = [one.join_hook(**kwargs) for one in joinables]
        self._enable, self._throws = enable, throw_on_early_termination
        self._group = joinables[0].join_process_group
        self._rank = get_rank(self._group)
        for place, one in enumerate(joinables):
            one._join_config = _Config(enable, throw_on_early_termination, place == 0)

    def __enter__(self) -> None:
        """Nothing to do: forwards tell the others that this rank still works."""

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Take part for those that still work, then end together."""
        if not self._enable or kind is not None:
            self._end()
            return
        worked, is_last = _sum(0, self._group), True
        while worked:
            if self._throws:
                _sum(1, self._group)
                self._end()
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            is_last = False
            worked = _sum(0, self._group)
        for hook in self._hooks:
            hook.post_hook(is_last)
        self._end()

    def _end(self) -> None:
        for one in self._joinables:
            one._join_config = _Config()

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Before an object's collectives of a step: tell the ranks without inputs that there is a step."""
        config = getattr(joinable, "_join_config", None)
        if config is None or not config.enable or not config.is_first_joinable:
            return None
        group = joinable.join_process_group
        work = all_reduce(wrap(np.ones(1, np.int64)), group=group, async_op=True)
        if config.throw_on_early_termination:
            if work is not None:
                work.wait()
            present = int(work.result()[0]._a[0]) if work is not None else 0
            if present < get_world_size(group):
                _sum(0, group)
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _sum(number: int, group: Any) -> int:
    total = wrap(np.array([number], np.int64))
    all_reduce(total, group=group)
    return int(total._a[0])
