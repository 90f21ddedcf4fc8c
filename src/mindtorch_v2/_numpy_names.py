"""`axis=` for `dim=`, `keepdims=` for `keepdim=`: PyTorch's functions take NumPy's names of arguments too.

An op's own function has these two keywords already, but asks for `dim` beside `axis`; a function written by hand may
know `dim` alone. What a program calls passes through here once, when it is first looked up. The functions of modules
such as `torch.fft` also take NumPy's names of tensors: they see the names of their arguments anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NoReturn

NAMES = {"axis": "dim", "keepdims": "keepdim"}
TENSOR_NAMES = {"x": "input", "a": "input", "x1": "input", "x2": "other"}
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
    """The function, which takes `axis` now if it has a `dim`, and `keepdims` if it has a `keepdim`."""
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
    known = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & WITH_REST or not any(ours in known for ours in NAMES.values()):
        return function
    if any(ours in known and numpys not in known for numpys, ours in NAMES.items()):
        return _wrapped(name, function)
    if "dim" in by_position and "axis" not in by_position:
        # Python wants a default for `dim`, which `axis` may stand for, and for every argument after it.
        given = function.__defaults__ or ()  # type: ignore[attr-defined]
        required = len(by_position) - len(given) - by_position.index("dim")
        function.__defaults__ = (MISSING,) * max(required, 0) + given  # type: ignore[attr-defined]
    return function


def torch_names(kwargs: dict[str, Any], names: dict[str, str], known: Container[str] = ()) -> dict[str, Any]:
    """The arguments under PyTorch's names, except those whose names the function has itself."""
    return {names.get(name, name) if name not in known else name: value for name, value in kwargs.items()}


def _wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and ("axis" in kwargs or "keepdims" in kwargs):
            kwargs = torch_names(kwargs, NAMES)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = function.__doc__, function.__module__
    return call
