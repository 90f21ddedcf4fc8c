"""`torch.ops.profiler`: scopes that calls open and close, as PyTorch's own `record_function` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..futures import Future
from .record_function import record_function


class _Op:
    """An op with overloads, which are the same function here."""

    def __init__(self, name: str, function: Callable[..., Any], overloads: tuple[str, ...]) -> None:
        self.__name__ = name
        self._function = function
        for overload in overloads:
            setattr(self, overload, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"profiler.{self.__name__}"


def _enter(name: str, args: str | None = None) -> record_function:
    """Open a scope."""
    return record_function(name, args).__enter__()


def _exit(handle: record_function) -> None:
    """Close a scope that was opened by a call."""
    handle.__exit__(None, None, None)


def _on_future(handle: record_function, fut: Future[Any]) -> Future[Any]:
    """Close a scope when a future is completed; returns a future of the same value that is completed after that."""
    return handle._call_end_callbacks_on_future(fut)


_record_function_enter = _Op("_record_function_enter", _enter, ("default",))
_record_function_enter_new = _Op("_record_function_enter_new", _enter, ("default",))
_record_function_exit = _Op("_record_function_exit", _exit, ("default", "_RecordFunction"))
_call_end_callbacks_on_jit_fut = _Op("_call_end_callbacks_on_jit_fut", _on_future, ("default", "_RecordFunction"))
