"""The end of a `with` block that Ctrl-C cannot skip.

Python raises KeyboardInterrupt where a function begins, before the function's own `try`; a profile function that raises
does the same. So an `__exit__` written in Python that begins with an interrupt does nothing, and what it should end
goes on. If `__enter__` is interrupted as it returns, `__exit__` is not called at all.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any


class Leaving:
    """An `__exit__` that calls a method of its object or, if an interrupt comes first, the method for giving up.

    A `with` statement looks it up before it enters. It gets a callable in C that resumes a generator: a pending
    interrupt is raised inside the generator's `try`. If the callable is dropped unused, the generator ends what has
    begun since.
    """

    def __init__(self, leave: Callable[[Any], object], give_up: Callable[[Any], object],
                 is_on: Callable[[Any], bool]) -> None:
        self._leave, self._give_up, self._is_on = leave, give_up, is_on

    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., None]:
        if instance is None:
            return self
        # A partial, because Python reports calls of built-in methods to profile functions.
        return partial(_Ending(self._ending(instance)).__exit__)

    def __call__(self, instance: Any, *exc: object) -> None:
        """For `ExitStack` and others that look it up in the class."""
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
    """Provides an `__exit__` in C that calls `close`, with any arguments."""

    closed = True  # so that dropping this does nothing

    def __init__(self, steps: Iterator[None]) -> None:
        next(steps)
        self.close = partial(next, steps, None)  # type: ignore[method-assign]
