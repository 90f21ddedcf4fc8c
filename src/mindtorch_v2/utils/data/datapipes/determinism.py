"""Pipes whose samples come in no fixed order, and a context that refuses them."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from .datapipe import IterDataPipe

_GUARANTEED = [False]


class guaranteed_datapipes_determinism:
    """A context in which no such pipe can be made."""

    prev: bool = False

    def __init__(self) -> None:
        self.prev = _GUARANTEED[0]
        _GUARANTEED[0] = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        _GUARANTEED[0] = self.prev


class non_deterministic:
    """Marks a class of such pipes; with a function of a pipe's arguments, only some of them."""

    def __init__(self, arg: Any) -> None:
        self.cls: Any = None
        self.deterministic_fn: Callable[..., bool] = lambda *args, **kwargs: True
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError("Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                                f"{arg.__name__} is found")
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            if _GUARANTEED[0]:
                raise TypeError(f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_"
                                "determinism'. You can turn off determinism for this DataPipe if that is acceptable "
                                "for your application")
            return self.cls(*args, **kwargs)
        if not (isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {args[0].__name__} is found")
        self.cls = args[0]
        return self._checked

    def _checked(self, *args: Any, **kwargs: Any) -> Any:
        found = self.deterministic_fn(*args, **kwargs)
        if not isinstance(found, bool):
            raise TypeError("deterministic_fn of `non_deterministic` decorator is required to return a boolean value, "
                            f"but {type(found)} is found")
        if _GUARANTEED[0] and found:
            raise TypeError(f"{self.cls.__name__} is non-deterministic with the inputs, but you set 'guaranteed_"
                            "datapipes_determinism'. You can turn off determinism for this DataPipe if that is "
                            "acceptable for your application")
        return self.cls(*args, **kwargs)
