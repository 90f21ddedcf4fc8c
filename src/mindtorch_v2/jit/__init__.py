"""`torch.jit`: programs are not compiled here. Marks for the compiler pass through, and so does what it would compile:

`script` and `trace` return the function or module they are given, after a warning, as `torch.compile` does. What needs
a compiled program (saving it, freezing it, its graph) raises or is not there.
"""

from __future__ import annotations as _annotations

import builtins
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin

from .._absent import refusing, refusing_class
from ..futures import Future
from ..nn.modules.module import Module
from ..nn.parameter import is_lazy
from . import annotations

__all__ = ["Attribute", "Error", "Final", "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "TracerWarning",
           "annotate", "annotations", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing",
           "isinstance", "load", "save", "script", "script_if_tracing", "script_method", "trace", "trace_module",
           "unused", "wait"]

T = TypeVar("T")
REASON = ("torch.jit.{0}: TorchScript does not exist in this runtime, which runs Python as it is. Call the function or "
          "module itself.")

load = refusing("load", NotImplementedError, REASON)
save = refusing("save", NotImplementedError, REASON)
_get_trace_graph = refusing("_get_trace_graph", NotImplementedError, REASON)
freeze = refusing("freeze", NotImplementedError, REASON)
# No object is an instance of it, which is what `isinstance` is asked for.
ScriptFunction = refusing_class("ScriptFunction", NotImplementedError, REASON)


class Error(RuntimeError):
    """What a compiled program would raise; programs catch it."""


class TracerWarning(Warning):
    """What tracing would warn of; programs silence it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing: there are no such warnings."""


class ScriptModule(Module):
    """A module whose methods are marked for compiling; they run as they are. No other module is an instance of it."""


RecursiveScriptModule = ScriptModule


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block in which compiled programs would be optimized or not. Nothing is compiled, so it changes nothing."""
    yield


class _Told:
    """Whether the warning was given; once is enough."""

    already = False


def _as_it_is(name: str, value: T) -> T:
    if not callable(value) and not builtins.isinstance(value, (dict, list)):
        raise TypeError(f"torch.jit.{name}: expected a function, a class or a module, got {type(value).__name__}")
    if not _Told.already:
        _Told.already = True
        warnings.warn(f"torch.jit.{name}: TorchScript does not exist in this runtime; functions and modules run as "
                      "they are.", stacklevel=3)
    return value


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """The function, class or module as it is. Warns once that nothing is compiled."""
    waiting = [name for name, kept in (*obj.named_parameters(), *obj.named_buffers()) if is_lazy(kept)] if (
        builtins.isinstance(obj, Module)) else []
    if waiting:
        raise RuntimeError(f"{type(obj).__name__!r} has uninitialized parameters {waiting}. Did you forget to run a "
                           "forward pass?")
    return _as_it_is("script", obj)


def trace(func: T, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, **options: Any) -> T:
    """The function or module as it is, which is not run with the examples. Warns once that nothing is compiled."""
    return _as_it_is("trace", func)


def trace_module(mod: T, inputs: Any, optimize: Any = None, check_trace: bool = True, **options: Any) -> T:
    """The module as it is. Warns once that nothing is compiled."""
    return _as_it_is("trace_module", mod)


def script_method(fn: T) -> T:
    """The method as it is."""
    return fn


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function as it is; with and without arguments."""
    return drop if callable(drop) else lambda function: function


def unused(fn: T) -> T:
    """The function as it is."""
    return fn


def export(fn: T) -> T:
    """The function as it is."""
    return fn


def interface(obj: T) -> T:
    """The class as it is."""
    return obj


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """A completed future of what the function returns: as in PyTorch, what is not compiled runs at once."""
    made: Future[Any] = Future()
    made.set_result(func(*args, **kwargs))
    return made


def wait(future: Future[Any]) -> Any:
    """The value of a future."""
    return future.wait()


_fork, _wait = fork, wait


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is: nothing is ever traced."""
    return fn


_script_if_tracing = script_if_tracing


def _overload(func: T) -> T:
    """The function as it is: a declaration of one of its signatures, which the body that follows replaces."""
    return func


_overload_method = _overload


class Attribute(NamedTuple):
    """A value and its type for the compiler; as in PyTorch outside of scripts, a pair of both."""

    value: Any
    type: Any


def annotate(the_type: Any, the_value: T) -> T:
    """The value as it is."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type that may say what a container holds, `list[int]` or `dict[str, Tensor] | None`.

    >>> isinstance([1, 2], list[int]), isinstance([1, "a"], list[int]), isinstance(None, int | None)
    (True, False, True)
    """
    if builtins.isinstance(target_type, (list, tuple)):
        return any(isinstance(obj, one) for one in target_type)
    kind, held = get_origin(target_type), get_args(target_type)
    if kind is None:
        return obj is None if target_type is None else builtins.isinstance(obj, target_type)
    if kind in (Union, types.UnionType):
        return any(isinstance(obj, one) for one in held)
    if not builtins.isinstance(obj, kind):
        return False
    if kind is dict:
        return all(isinstance(key, held[0]) and isinstance(value, held[1]) for key, value in obj.items())
    if kind is tuple:
        if len(held) == 2 and held[1] is Ellipsis:
            return all(isinstance(one, held[0]) for one in obj)
        return len(obj) == len(held) and all(map(isinstance, obj, held))
    return all(isinstance(one, held[0]) for one in obj)
