"""What pipes refuse: functions that cannot be called with what they will be given, and modes that files do not have."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from io import IOBase
from typing import Any

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_callable(function: Any) -> None:
    """Refuse what cannot be called; warn of what a worker process that is spawned cannot be sent."""
    if not callable(function):
        raise TypeError(f"A callable function is expected, but {type(function)} is provided.")
    while isinstance(function, functools.partial):
        function = function.func
    for kind, is_one in (("Local", _is_local(function)), ("Lambda", getattr(function, "__name__", "") == "<lambda>")):
        if is_one:
            warnings.warn(f"{kind} function is not supported by pickle, please use regular python function or "
                          "functools.partial instead.", UserWarning, stacklevel=3)
            return


def _is_local(function: Any) -> bool:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        function = type(function) if not isinstance(function, type) else function
    return "<locals>" in getattr(function, "__qualname__", "")


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """Refuse a function that takes more or fewer arguments than there are columns."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except ValueError:
        return  # a built-in function without a signature
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    name = getattr(fn, "__name__", None) or str(fn)
    positional = [one for one in parameters if one.kind in _POSITIONAL]
    needed = [one for one in positional if one.default is inspect.Parameter.empty]
    keywords = [one for one in parameters
                if one.kind is inspect.Parameter.KEYWORD_ONLY and one.default is inspect.Parameter.empty]
    if keywords:
        raise ValueError(f"The function {name} takes {len(keywords)} non-default keyword-only parameters, which is not "
                         "allowed.")
    if len(needed) > count:
        raise ValueError(f"The function {name} takes {len(needed)} positional parameters, but {count} are required.")
    takes_any = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters)
    if len(positional) < count and not takes_any:
        raise ValueError(f"The function {name} takes {len(positional)} parameters, but {count} are required.")


def validate_pathname_binary_tuple(data: Any) -> None:
    """Refuse anything but a pair of a path and a stream."""
    from .utils.common import StreamWrapper

    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError("binary stream within the tuple should have IOBase or its subclasses as type, but it is type "
                        f"{type(data[1])}")
