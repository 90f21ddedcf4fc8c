"""`torch.profiler._memory_profiler`: the names that programs import from it."""

from __future__ import annotations

from mtprof.export.memory_timeline import MemoryProfileTimeline
from mtprof.views.memory_categories import Category
from mtprof.views.memory_flow_nodes import DataFlowEdge, DataFlowGraph, DataFlowNode
from mtprof.views.memory_key import Key, TensorKey
from mtprof.views.memory_key import Storage as _Storage
from mtprof.views.memory_profile import Action, MemoryProfile
from mtprof.views.memory_profile import Categories as CategoryDict

from .op_tree import OpTree, get_scopes
from .parameters_in_tree import _extract_parameters_and_gradients, extract_gradients, extract_parameters
from .schema_matcher import SchemaMatcher

KeyAndID = tuple[Key, int]
TensorAndID = tuple[TensorKey, int]

__all__ = [
    "Action",
    "Category",
    "CategoryDict",
    "DataFlowEdge",
    "DataFlowGraph",
    "DataFlowNode",
    "Key",
    "KeyAndID",
    "MemoryProfile",
    "MemoryProfileTimeline",
    "OpTree",
    "SchemaMatcher",
    "TensorAndID",
    "TensorKey",
    "_Storage",
    "_extract_parameters_and_gradients",
    "extract_gradients",
    "extract_parameters",
    "get_scopes",
]
