"""`torch.fx`: a module's forward as a graph, which can be changed and run again as Python.

>>> import mindtorch_v2 as torch
>>> class Twice(torch.nn.Module):
...     def forward(self, x):
...         return torch.relu(x) * 2
>>> traced = torch.fx.symbolic_trace(Twice())
>>> print(traced.code.strip())
def forward(self, x):
    relu = torch.relu(x);  x = None
    mul = relu * 2;  relu = None
    return mul
"""

from __future__ import annotations

from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = ["PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
           "Transformer", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap"]
