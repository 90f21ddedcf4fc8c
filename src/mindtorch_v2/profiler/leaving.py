"""The end of a `with` block that Ctrl-C cannot skip.

Python raises KeyboardInterrupt where it begins a function, before the function's own `try`, and a profile function that
raises does the same. An `__exit__` written in Python that begins with an interrupt therefore does nothing, and what it
should have ended goes on. The same happens if `__enter__` is interrupted as it returns: `__exit__` is not called then.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any


class Leaving:
    """An `__exit__` that calls a method of its object or, if anything comes first, the method for giving up.

    A `with` statement asks for it before it enters. It gets a callable in C that wakes a generator: an interrupt that
    waits is raised where the generator stands, inside its `try`. If it is dropped unused, it ends what was begun since.
    """

    def __init__(self, leave: Callable[[Any], object], give_up: Callable[[Any], object],
                 is_on: Callable[[Any], bool]) -> None:
        self._leave, self._give_up, self._is_on = leave, give_up, is_on

    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., None]:
        if instance is None:
            return self
        # A partial, because Python tells profile functions of calls of built-in methods.
        return partial(_Ending(self._ending(instance)).__exit__)

    def __call__(self, instance: Any, *exc: object) -> None:
        """For `ExitStack` and others that find it in the class."""
        self.__get__(instance)(*exc)

    def _ending(self, instance: Any) -> Iterator[None]:
        was_on = self._is_on(instance)
        try:
            yield
            self._leave(instance)
        except GeneratorExit:  # it is dropped
            if not was_on and self._is_on(instance):
                self._give_up(instance)
            raise
        except BaseException:
            self._give_up(instance)
            raise


class _Ending(io.IOBase):
    """Lends its `__exit__`, which is in C and calls `close`, with whatever arguments."""

    closed = True  # so that nothing is done where this is dropped

    def __init__(self, steps: Iterator[None]) -> None:
        next(steps)
        self.close = partial(next, steps, None)  # type: ignore[method-assign]
