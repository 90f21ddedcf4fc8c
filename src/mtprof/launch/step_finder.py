"""Tells the profiler where steps end in a program that does not: after the optimizer, or at the loader's next batch.

Of several optimizers, the one that stepped first counts. A batch ends a step if no optimizer stepped since the last
batch, so a loop that only evaluates has steps too. Loops without either have none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class StepFinder:
    """Watches a runtime's optimizers and loaders; calls `tick` at the end of each step, outside of all events."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._first: type | None = None
        self._stepped = False  # since the last batch
        self._batches = 0

    def watch(self, torch: Any) -> None:
        """Wrap what makes steps, before the program creates its optimizers and loaders."""
        optimizer = torch.optim.Optimizer
        original = optimizer.profile_hook_step

        def hook(function: Any) -> Any:
            inner = original(function)

            @functools.wraps(inner)
            def step(*args: Any, **kwargs: Any) -> Any:
                result = inner(*args, **kwargs)
                self.optimizer_stepped(type(args[0]))
                return result

            return step

        optimizer.profile_hook_step = staticmethod(hook)
        loader = torch.utils.data.dataloader._BaseDataLoaderIter
        following = loader.__next__

        @functools.wraps(following)
        def batch(iterator: Any) -> Any:
            self.batch_asked_for()
            return following(iterator)

        loader.__next__ = batch

    def optimizer_stepped(self, kind: type) -> None:
        """An optimizer has stepped."""
        if self._first is None:
            self._first = kind
        if kind is self._first:
            self._stepped = True
            self._tick()

    def batch_asked_for(self) -> None:
        """A loader is about to give a batch."""
        if self._batches and not self._stepped:
            self._tick()
        self._batches += 1
        self._stepped = False
