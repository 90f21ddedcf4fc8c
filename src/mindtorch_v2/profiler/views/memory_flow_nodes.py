"""The data flow as objects with PyTorch's names: `prof._memory_profile()._data_flow_graph.flow_nodes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..trace import Trace
from .memory_flow import WRITES, Flow
from .memory_key import TensorKey

OUTSIDE = "[memory]"  # the name of a change of memory outside of all ops


@dataclass(frozen=True)
class FlowEvent:
    """What a node is about."""

    name: str
    start_time_ns: int


@dataclass(frozen=True)
class DataFlowNode:
    """A step of the data flow, with the versions of the blocks that it takes and leaves behind."""

    _event: FlowEvent
    inputs: dict[TensorKey, tuple[bool, int]]  # whether it writes them, and the version that it finds
    outputs: dict[TensorKey, int]
    intermediates: tuple[TensorKey, ...]

    @property
    def start_time(self) -> int:
        """Nanoseconds since 1970."""
        return self._event.start_time_ns


@dataclass(frozen=True)
class DataFlowGraph:
    """All steps in order of time."""

    flow_nodes: tuple[DataFlowNode, ...]


def data_flow_graph(trace: Trace, flow: Flow, keys: Sequence[TensorKey]) -> DataFlowGraph:
    """The graph of a flow."""
    rows, names = flow.row.tolist(), trace.events["name"]
    events = [FlowEvent(trace.names[names[row]] if row >= 0 else OUTSIDE, start + trace.epoch_ns)
              for row, start in zip(rows, flow.start_ns.tolist())]
    nodes = [DataFlowNode(event, {}, {}, ()) for event in events]
    passing: list[list[TensorKey]] = [[] for _ in nodes]
    columns = (flow.step, flow.block, flow.version, (flow.what & WRITES) != 0, flow.enters, flow.leaves, flow.passing,
               flow.version + flow.bumps.astype(np.int64))
    for step, block, version, writes, enters, leaves, passes, after in zip(*(column.tolist() for column in columns)):
        key = keys[block]
        if enters:
            nodes[step].inputs[key] = (writes, version)
        if leaves:
            nodes[step].outputs[key] = after
        if passes:
            passing[step].append(key)
    return DataFlowGraph(tuple(DataFlowNode(node._event, node.inputs, node.outputs, tuple(inner))
                               for node, inner in zip(nodes, passing)))
