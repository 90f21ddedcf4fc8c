"""Names that exist in PyTorch but do nothing here: calling them raises an error with the reason.

Everything made here has its reason as `__refused__`, which the coverage page looks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ._device import DeviceLike


def refusing(name: str, error: type[BaseException], reason: str) -> Callable[..., NoReturn]:
    """A function that raises; `{0}` in the reason stands for its name."""
    reason = reason.replace("{0}", name)

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise error(reason)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises {error.__name__}: {reason}"
    refuse.__refused__ = reason  # type: ignore[attr-defined]
    return refuse


def refusing_class(name: str, error: type[BaseException], reason: str) -> type:
    """A class that can be named, in annotations and isinstance, but not instantiated; `{0}` is as for `refusing`."""
    reason = reason.replace("{0}", name)

    def new(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise error(reason)

    return type(name, (), {"__new__": new, "__doc__": f"Cannot be made: {reason}", "__refused__": reason})


class AbsentDevice:
    """The context of a device that is not there: can be made, not entered, unless it stands for no device."""

    reason = ""

    def __init__(self, device: DeviceLike) -> None:
        self.idx = -1 if device is None else device

    def __enter__(self) -> None:
        if self.idx != -1:
            raise AssertionError(self.reason)

    def __exit__(self, *exc: object) -> None:
        return None


class AbsentStream:
    """The context of a stream of such a device; without a stream it does nothing."""

    reason = ""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            raise AssertionError(self.reason)

    def __exit__(self, *exc: object) -> None:
        return None
