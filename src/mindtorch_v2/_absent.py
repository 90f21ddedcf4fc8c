"""Names that exist in PyTorch and cannot do anything here: calling them says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def refusing(name: str, error: type[BaseException], reason: str) -> Callable[..., NoReturn]:
    """A function that raises."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise error(reason)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises {error.__name__}: {reason}"
    return refuse


def refusing_class(name: str, error: type[BaseException], reason: str) -> type:
    """A class that can be named, in annotations and isinstance, but not instantiated."""

    def new(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise error(reason)

    return type(name, (), {"__new__": new, "__doc__": f"Cannot be made: {reason}"})
