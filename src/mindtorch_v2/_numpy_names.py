"""`axis=` for `dim=`: PyTorch's functions and methods take NumPy's name of the argument too.

An op's own function has the keyword already, but asks for `dim` beside it; a function written by hand may know `dim`
alone. What a program calls passes through here once, when it is first looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

WITH_REST = 0x04 | 0x08  # a code object's flags: *args, **kwargs


class Missing:
    """Stands for an argument that was not given: using it raises the error that Python would have raised."""

    __slots__ = ()

    def _complain(self, *others: Any) -> NoReturn:
        raise TypeError("missing a required argument")

    __index__ = __lt__ = __le__ = __gt__ = __ge__ = __len__ = __iter__ = _complain
    _a = property(_complain)


MISSING = Missing()


def accept_axis(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which takes `axis` now if it has a `dim`."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function
    if hasattr(function, "__face__"):
        # It may ask for overriders now, and has the code that knows its arguments beside it, see `_faces`.
        own: Any = function.__wrapped__  # type: ignore[attr-defined]
        accepting = accept_axis(name, own)
        function.__defaults__ = own.__defaults__  # type: ignore[attr-defined]
        return function if accepting is own else _wrapped(name, function)
    by_position = code.co_varnames[:code.co_argcount]
    by_keyword = code.co_varnames[code.co_argcount:code.co_argcount + code.co_kwonlyargcount]
    if "dim" not in by_position or code.co_flags & WITH_REST:
        return function
    given = function.__defaults__ or ()  # type: ignore[attr-defined]
    if "axis" in by_position:
        return function
    if "axis" in by_keyword:
        # Python wants a default for `dim`, which `axis` may stand for, and for every argument after it.
        required = len(by_position) - len(given) - by_position.index("dim")
        function.__defaults__ = (MISSING,) * max(required, 0) + given  # type: ignore[attr-defined]
        return function
    return _wrapped(name, function)


def _wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = function.__doc__, function.__module__
    return call
