"""PyTorch allows one profiler at a time: ours pauses while a program runs its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class OtherProfilers:
    """Watches where a program prepares, starts and stops PyTorch's profiler, by the three calls that all ways use.

    Calls `before` ahead of the program's profiler, and `after` when none of them is left; ignores what is done within
    `ours`.
    """

    def __init__(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        self._before = before
        self._after = after
        self._running = 0  # the program's profilers that were started; preparing alone does not count
        self._here = threading.local()

    def watch(self) -> None:
        """Begin to watch."""
        module = import_module("torch.autograd.profiler")
        for name, act in (("_prepare_profiler", self._prepare), ("_enable_profiler", self._enable),
                          ("_disable_profiler", self._disable)):
            _wrap(module, name, act)
        # A step of a schedule may stop, hand the trace out and start again: ours must not start in between.
        _wrap(import_module("torch.profiler").profile, "_transit_action", self._transit)

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Ignore what this thread does inside this block: it is not the program's."""
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
