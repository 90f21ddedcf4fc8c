"""The warning that storages with a dtype will go: once in a process, or at each use if a program asks for that."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

MESSAGE = ("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
           "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
           "directly, use tensor.untyped_storage() instead of tensor.storage()")


class Removal:
    """The state of the warning in this process."""

    always = False
    warned = False
    inside = False  # a public function of a storage runs: what it calls has been warned of


def warn(stacklevel: int = 2) -> None:
    """Warn the caller's caller, if a warning is due."""
    if Removal.inside or (Removal.warned and not Removal.always):
        return
    Removal.warned = True
    warnings.warn(MESSAGE, UserWarning, stacklevel=stacklevel + 1)


def warning(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of programs that warns, and then may use others of its kind."""
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if Removal.inside:
            return function(*args, **kwargs)
        warn()
        Removal.inside = True
        try:
            return function(*args, **kwargs)
        finally:
            Removal.inside = False

    return run
