"""`torch.jit`: programs are not compiled here. Marks for the compiler pass through; compiling raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ._absent import refusing, refusing_class

T = TypeVar("T")
REASON = ("torch.jit.{0}: TorchScript does not exist in this runtime, which runs Python as it is. Call the function or "
          "module itself.")

script = refusing("script", NotImplementedError, REASON.format("script"))
trace = refusing("trace", NotImplementedError, REASON.format("trace"))
trace_module = refusing("trace_module", NotImplementedError, REASON.format("trace_module"))
load = refusing("load", NotImplementedError, REASON.format("load"))
save = refusing("save", NotImplementedError, REASON.format("save"))
freeze = refusing("freeze", NotImplementedError, REASON.format("freeze"))
fork = refusing("fork", NotImplementedError, REASON.format("fork"))
wait = refusing("wait", NotImplementedError, REASON.format("wait"))
# No object is an instance of these, which is what `isinstance` is asked for.
ScriptModule = refusing_class("ScriptModule", NotImplementedError, REASON.format("ScriptModule"))
ScriptFunction = refusing_class("ScriptFunction", NotImplementedError, REASON.format("ScriptFunction"))
RecursiveScriptModule = ScriptModule


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


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is: nothing is ever traced."""
    return fn


def annotate(the_type: Any, the_value: T) -> T:
    """The value as it is."""
    return the_value
