"""The data flow as objects with PyTorch's names: `prof._memory_profile()._data_flow_graph.flow_nodes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..trace import Trace
from .memory_flow import ALLOCATES, RELEASES, WRITES, Flow
from .memory_key import Key, TensorKey

OUTSIDE = "[memory]"  # the name of a change of memory outside of all ops


@dataclass(frozen=True)
class FlowEvent:
    """The subject of a node."""

    name: str
    start_time_ns: int


@dataclass(frozen=True)
class DataFlowEdge:
    """What a step does to a block."""

    input_version: int | None = None  # the version that it finds; None if it allocates the block
    mutated: bool | None = False  # whether it writes; None if it releases the block

    @property
    def is_allocation(self) -> bool:
        """Whether the block begins here."""
        return self.input_version is None

    @property
    def is_deletion(self) -> bool:
        """Whether the block ends here."""
        return self.mutated is None


@dataclass(frozen=True)
class DataFlowNode:
    """A step of the data flow, with the versions of the blocks that it takes and leaves behind."""

    _event: FlowEvent
    _edges: dict[TensorKey, DataFlowEdge]

    @property
    def inputs(self) -> dict[TensorKey, tuple[bool, int]]:
        """Its inputs: whether it writes or releases each, and the version."""
        return {key: (edge.mutated is not False, edge.input_version) for key, edge in self._edges.items()
                if edge.input_version is not None}

    @property
    def outputs(self) -> dict[TensorKey, int]:
        """Its outputs, new or changed, and the version."""
        return {key: 0 if edge.input_version is None else edge.input_version + 1 for key, edge in self._edges.items()
                if not edge.is_deletion and (edge.is_allocation or edge.mutated)}

    @property
    def intermediates(self) -> tuple[TensorKey, ...]:
        """Blocks that begin and end within it."""
        return tuple(key for key, edge in self._edges.items() if edge.is_allocation and edge.is_deletion)

    @property
    def start_time(self) -> int:
        """Nanoseconds since 1970."""
        return self._event.start_time_ns


class DataFlowGraph:
    """All steps in order of time."""

    def __init__(self, flow_nodes: tuple[DataFlowNode, ...]) -> None:
        self.flow_nodes = flow_nodes
        # The version of each block at the end; None for released blocks.
        self._active_version: dict[TensorKey, int | None] = {}
        for node in flow_nodes:
            for key, edge in node._edges.items():
                before = edge.input_version
                after = 0 if before is None else before + bool(edge.mutated)
                self._active_version[key] = None if edge.is_deletion else after

    def lookup(self, key: TensorKey) -> int:
        """The version of a block at the end."""
        version = self._active_version.get(key)
        if version is None:
            raise AssertionError(f"{key} does not exist at the end of the recording")
        return version


def data_flow_graph(trace: Trace, flow: Flow, keys: Sequence[Key]) -> DataFlowGraph:
    """The graph of a flow."""
    rows, names = flow.row.tolist(), trace.events["name"]
    nodes = [DataFlowNode(FlowEvent(trace.names[names[row]] if row >= 0 else OUTSIDE, start + trace.epoch_ns), {})
             for row, start in zip(rows, flow.start_ns.tolist())]
    for step, block, version, what in zip(*(column.tolist() for column in (flow.step, flow.block, flow.version,
                                                                            flow.what))):
        key = keys[block]
        if isinstance(key, TensorKey):
            nodes[step]._edges[key] = DataFlowEdge(
                None if what & ALLOCATES else version, None if what & RELEASES else bool(what & WRITES))
    return DataFlowGraph(tuple(nodes))
