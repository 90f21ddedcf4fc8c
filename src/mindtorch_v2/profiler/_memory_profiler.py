"""`torch.profiler._memory_profiler`: the names that programs use from there."""

from __future__ import annotations

from .export.memory_timeline import MemoryProfileTimeline
from .op_tree import OpTree, get_scopes
from .views.memory_categories import Category
from .views.memory_flow_nodes import DataFlowGraph, DataFlowNode
from .views.memory_key import TensorKey
from .views.memory_profile import Action, MemoryProfile

__all__ = [
    "Action",
    "Category",
    "DataFlowGraph",
    "DataFlowNode",
    "MemoryProfile",
    "MemoryProfileTimeline",
    "OpTree",
    "TensorKey",
    "get_scopes",
]
