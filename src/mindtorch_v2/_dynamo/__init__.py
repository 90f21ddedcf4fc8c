"""`torch._dynamo`: PyTorch's compiler of Python functions. There is none here; marks for it change nothing.

What only guides a compiler returns what it was given. What asks for compiled code raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._absent import refusing
from . import config
from .eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "disallow_in_graph",
           "explain", "export", "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_supported",
           "is_inductor_supported", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
           "maybe_mark_dynamic", "optimize", "register_backend", "reset", "run"]

_REASON = "torch._dynamo.{0}: this runtime has no compiler; functions and modules run as they are"

optimize = refusing("optimize", NotImplementedError, _REASON)
optimize_assert = refusing("optimize_assert", NotImplementedError, _REASON)
explain = refusing("explain", NotImplementedError, _REASON)
export = refusing("export", NotImplementedError, _REASON)
register_backend = refusing("register_backend", NotImplementedError, _REASON)


def is_compiling() -> bool:
    """False."""
    return False


def is_dynamo_supported() -> bool:
    """False."""
    return False


def is_inductor_supported() -> bool:
    """False."""
    return False


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """None."""
    return []


def reset() -> None:
    """Forget what was compiled, which is nothing."""


def graph_break(msg: str = "") -> None:
    """End a compiled part of a function; there is none to end."""


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None,
            wrapping: bool = True) -> Any:
    """The function as it is; without one, a decorator."""
    return (lambda function: function) if fn is None else fn


_disable_dynamo = disable  # torch has it under this name


def _as_it_is(fn: Any) -> Any:
    """The function as it is."""
    return fn


run = allow_in_graph = disallow_in_graph = forbid_in_graph = assume_constant_result = _as_it_is


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Say that a size will vary: all may."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """As `mark_dynamic`."""


def mark_static(t: Any, index: Any = None) -> None:
    """Say that a size will not vary; nobody relies on it."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Say that a tensor will not move in memory; nobody relies on it."""
