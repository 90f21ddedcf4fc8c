"""`torch.compiler`: there is no compiler. Marks for it have no effect, and nothing is ever being compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _dynamo
from ._absent import refusing
from ._compile import compile

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
           "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance",
           "substitute_in_graph"]

allow_in_graph = _dynamo.allow_in_graph
assume_constant_result = _dynamo.assume_constant_result
disable = _dynamo.disable
list_backends = _dynamo.list_backends
reset = _dynamo.reset
is_compiling = is_dynamo_compiling = is_exporting = _dynamo.is_compiling
substitute_in_graph = refusing("substitute_in_graph", NotImplementedError,
                               "torch.compiler.substitute_in_graph: this runtime has no compiler")


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no CUDA graphs."""


class set_stance:
    """How to treat compiled code, of which there is none. A function call, a context and a decorator, as in PyTorch."""

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
                 force_backend: Any = None) -> None:
        self.stance = stance

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
