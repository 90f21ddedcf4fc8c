"""`torch.fx`: functions are not traced into graphs here. Marks for the tracer pass through; tracing raises."""

from __future__ import annotations

from typing import TypeVar

from ._absent import refusing, refusing_class

__all__ = ["CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
           "replace_pattern", "symbolic_trace", "wrap"]

T = TypeVar("T")
_REASON = "torch.fx.{0}: this runtime runs Python as it is and does not trace it into graphs"
symbolic_trace = refusing("symbolic_trace", NotImplementedError, _REASON.format("symbolic_trace"))
replace_pattern = refusing("replace_pattern", NotImplementedError, _REASON.format("replace_pattern"))
# No object is an instance of these, which is what `isinstance` is asked for.
CodeGen = refusing_class("CodeGen", NotImplementedError, _REASON.format("CodeGen"))
Graph = refusing_class("Graph", NotImplementedError, _REASON.format("Graph"))
GraphModule = refusing_class("GraphModule", NotImplementedError, _REASON.format("GraphModule"))
Interpreter = refusing_class("Interpreter", NotImplementedError, _REASON.format("Interpreter"))
Node = refusing_class("Node", NotImplementedError, _REASON.format("Node"))
Proxy = refusing_class("Proxy", NotImplementedError, _REASON.format("Proxy"))
Tracer = refusing_class("Tracer", NotImplementedError, _REASON.format("Tracer"))
Transformer = refusing_class("Transformer", NotImplementedError, _REASON.format("Transformer"))


def wrap(fn_or_name: T) -> T:
    """What it is given: a mark for the tracer, that this function is a leaf."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    return fn_or_name
