"""Call paths as a tree, over all events, with the self time of each node: the data of flame graphs.

A path is the Python stack of an event, then the events around it, then the event itself. By module, it has the path of
the module in the model instead of the stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..names import frame_text
from ..schema import PYTHON_KINDS, Kind
from ..tables.tree import lifted, subtree_sums
from ..trace import Trace
from .trace_view import TraceView


@dataclass(frozen=True)
class CallPaths:
    """A tree of nodes; a parent comes before its children, and -1 stands for the root."""

    labels: list[str]
    label: np.ndarray  # by node, its place in `labels`
    parent: np.ndarray
    self_ns: np.ndarray
    count: np.ndarray  # of events

    def __len__(self) -> int:
        return len(self.label)

    @property
    def total_ns(self) -> np.ndarray:
        """Time of the node and all nodes below."""
        return subtree_sums(self.parent, self.self_ns)

    def path(self, node: int) -> list[str]:
        """The labels from the root to a node."""
        found = []
        while node >= 0:
            found.append(self.labels[self.label.item(node)])
            node = self.parent.item(node)
        return found[::-1]

    def timed(self) -> Iterator[int]:
        """Nodes with a self time."""
        yield from np.flatnonzero(self.self_ns > 0).tolist()


class _Nodes:
    def __init__(self) -> None:
        self.labels: list[str] = []
        self._label_ids: dict[str, int] = {}
        self.ids: dict[tuple[int, int], int] = {}  # parent and label

    def label(self, text: str) -> int:
        found = self._label_ids.setdefault(text, len(self.labels))
        if found == len(self.labels):
            self.labels.append(text)
        return found

    def node(self, parent: int, label: int) -> int:
        return self.ids.setdefault((parent, label), len(self.ids))


def call_paths(trace: Trace, *, by_module: bool = False) -> CallPaths:
    """The tree of a trace's host events. Steps are left out, so that equal paths of all steps are one."""
    events = trace.events
    nodes = _Nodes()
    python = np.isin(events["kind"], PYTHON_KINDS)
    kept = (events["device"] == 0) & (events["kind"] != Kind.STEP)
    if by_module:
        kept &= ~python
        outer = _module_nodes(trace, nodes)
        base = np.append(outer, -1)[events["module"]] if len(trace) else np.zeros(0, np.int64)
    else:
        outer = _stack_nodes(trace, nodes)
        base = np.append(outer, -1)[events["stack"]] if len(trace) else np.zeros(0, np.int64)
    label = np.array([nodes.label(name) for name in trace.names], np.int64)[events["name"]]
    node = np.full(len(trace), -1, np.int64)
    # A Python call is in the stack around it; another event is in the stack that its parent is in.
    parent = np.where(python, -1, lifted(events["parent"], kept & ~python))
    depth = _depths(parent)
    for level in range(int(depth[kept].max(initial=-1)) + 1):
        rows = np.flatnonzero(kept & (depth == level))
        above = node[parent[rows]] if level else base[rows]
        pairs, which = np.unique((above + 1) * len(nodes.labels) + label[rows], return_inverse=True)
        found = [nodes.node(pair // len(nodes.labels) - 1, pair % len(nodes.labels)) for pair in pairs.tolist()]
        node[rows] = np.array(found, np.int64)[which.reshape(-1)]
    view = TraceView(trace)
    own = np.zeros(len(trace), np.int64)
    shown = view.row >= 0
    own[view.row[shown]] = view.self_cpu_ns[shown]
    rows = np.flatnonzero(kept)
    size = len(nodes.ids)
    keys = np.array(list(nodes.ids), np.int64).reshape(-1, 2)
    return CallPaths(nodes.labels, keys[:, 1], keys[:, 0],
                     np.bincount(node[rows], own[rows], size).astype(np.int64)[:size],
                     np.bincount(node[rows], minlength=size)[:size])


def _stack_nodes(trace: Trace, nodes: _Nodes) -> np.ndarray:
    stacks = trace.optional("stacks")
    texts = [nodes.label(frame_text(frame)) for frame in trace.frames]
    found: list[int] = []
    for frame, caller in zip(stacks["frame"].tolist(), stacks["caller"].tolist()):
        found.append(nodes.node(found[caller] if caller >= 0 else -1, texts[frame]))
    return np.array(found, np.int64)


def _module_nodes(trace: Trace, nodes: _Nodes) -> np.ndarray:
    """By name, the node of the module with that path; only names of modules are used."""
    found = np.full(len(trace.names), -1, np.int64)
    for number in np.unique(trace.events["module"][trace.events["module"] >= 0]).tolist():
        node = -1
        for part in trace.names[number].split("."):
            node = nodes.node(node, nodes.label(part))
        found[number] = node
    return found


def _depths(parent: np.ndarray) -> np.ndarray:
    depth = np.zeros(len(parent), np.int64)
    above = parent.copy()
    while (above >= 0).any():
        depth[above >= 0] += 1
        above = np.where(above >= 0, parent[above], -1)
    return depth
