"""`torch._jit_internal`: marks for PyTorch's compiler, which some models import from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: UP035  (programs import them from here)

from .jit import export, ignore, is_scripting, unused

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "Final", "List", "Optional", "Tuple",
           "Union", "boolean_dispatch", "export", "ignore", "is_scripting", "unused"]

# Annotations that mean "a list of this length, or one number"; nothing reads them here.
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list


def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any],
                     if_false: Callable[..., Any], module_name: str, func_name: str) -> Callable[..., Any]:
    """A function that calls one of two, by the value of a flag among its arguments."""

    def function(*args: Any, **kwargs: Any) -> Any:
        flag = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if flag else if_false)(*args, **kwargs)

    function.__name__, function.__module__ = func_name, module_name
    function.__doc__ = if_true.__doc__ or if_false.__doc__
    return function


def _overload_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method unchanged: a mark for the compiler."""
    return method


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function unchanged: a mark for the compiler."""
    return fn
