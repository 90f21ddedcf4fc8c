"""PyTorch has one profiler at a time: ours stands back while a program runs one of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class OtherProfilers:
    """Sees where a program makes PyTorch's profiler ready, starts and stops it, by the three calls that all ways use.

    `before` is called ahead of theirs, `after` when none of theirs is left; not for what is done within `ours`.
    """

    def __init__(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        self._before = before
        self._after = after
        self._running = 0  # theirs that were started; made ready alone does not count
        self._here = threading.local()

    def watch(self) -> None:
        """Begin to see them."""
        module = import_module("torch.autograd.profiler")
        for name, act in (("_prepare_profiler", self._prepare), ("_enable_profiler", self._enable),
                          ("_disable_profiler", self._disable)):
            _wrap(module, name, act)
        # A step of a schedule may stop, hand the trace out and start again: nothing of ours fits in between.
        _wrap(import_module("torch.profiler").profile, "_transit_action", self._transit)

    @contextmanager
    def ours(self) -> Iterator[None]:
        """What this thread does in here is not the program's."""
        self._here.ours = True
        try:
            yield
        finally:
            self._here.ours = False

    def _is_ours(self) -> bool:
        return getattr(self._here, "ours", False)

    def _prepare(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self._is_ours():
            self._here.ready = True
            self._before()
        return original(*args, **kwargs)

    def _enable(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._is_ours():
            return original(*args, **kwargs)
        self._before()
        self._here.ready = False
        try:
            result = original(*args, **kwargs)
        except BaseException:
            self._go_on()
            raise
        self._running += 1
        return result

    def _disable(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._is_ours():
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            self._running = max(self._running - 1, 0)
            self._here.ready = False
            self._go_on()

    def _transit(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._is_ours():
            return original(*args, **kwargs)
        self._here.inside = True
        try:
            return original(*args, **kwargs)
        finally:
            self._here.inside = False
            self._go_on()

    def _go_on(self) -> None:
        here = self._here
        if not self._running and not getattr(here, "ready", False) and not getattr(here, "inside", False):
            self._after()


def _wrap(owner: Any, name: str, act: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        return act(original, *args, **kwargs)

    setattr(owner, name, call)
