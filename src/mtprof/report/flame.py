"""Flame graphs: time by Python stack and by module, as trees of names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..analysis import Analysis
from ..analysis.places import is_users
from ..schema import DEVICE_KINDS, PYTHON_KINDS
from ..trace import Trace
from ..views.module_tree import OUTSIDE

MOST_NODES = 60_000


class _Tree:
    """Nodes as columns: the node above, a name, the time of the node itself."""

    def __init__(self, root: str) -> None:
        self.names: dict[str, int] = {root: 0}
        self.parent, self.name, self.value, self.library = [-1], [0], [0], [0]
        self._known: dict[tuple[int, int], int] = {}

    def node(self, above: int, text: str, library: bool = False) -> int:
        """The node of a name below another."""
        word = self.names.setdefault(text, len(self.names))
        found = self._known.get((above, word))
        if found is None:
            found = self._known[above, word] = len(self.parent)
            self.parent.append(above)
            self.name.append(word)
            self.value.append(0)
            self.library.append(int(library))
        return found

    def columns(self) -> dict[str, Any]:
        """The tree for the page; the smallest nodes are left out if there are too many."""
        total = np.array(self.value, np.int64)
        for place in range(len(total) - 1, 0, -1):  # a node comes after the one above it
            total[self.parent[place]] += total[place]
        kept = np.arange(len(total))
        if len(total) > MOST_NODES:
            kept = np.sort(np.argpartition(-total, MOST_NODES)[:MOST_NODES])
        place = np.full(len(total), -1)
        place[kept] = np.arange(len(kept))
        parent = np.array(self.parent)[kept]
        return {"parent": np.where(parent >= 0, place[parent], -1).tolist(), "name": np.array(self.name)[kept].tolist(),
                "total": total[kept].tolist(), "library": np.array(self.library)[kept].tolist(),
                "names": list(self.names), "left_out": int(len(total) - len(kept))}


def flames_of(analysis: Analysis) -> dict[str, Any]:
    """The graphs that the recording has evidence for."""
    trace = analysis.trace
    found = {}
    if trace.has("stacks") and (trace.events["stack"] >= 0).any():
        found["stack"] = _by_stack(trace).columns()
    if analysis.modules is not None:
        found["module"] = _by_module(analysis).columns()
    found["call"] = _by_call(trace).columns()
    return found


def _self_times(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """The host's ops and scopes, and the own time of each."""
    events = trace.events
    rows = np.flatnonzero(~np.isin(events["kind"], (*PYTHON_KINDS, *DEVICE_KINDS)))
    return rows, trace.self_ns()[rows]


def _by_stack(trace: Trace) -> _Tree:
    tree = _Tree("all")
    rows, times = _self_times(trace)
    events = trace.events
    keys = np.stack([events["stack"][rows], events["name"][rows]])
    groups, which = np.unique(keys, axis=1, return_inverse=True)
    sums = np.bincount(which.reshape(-1), times, groups.shape[1]).astype(np.int64)
    users = [is_users(frame) for frame in trace.frames]
    numbers = {frame: place for place, frame in enumerate(trace.frames)}
    places: dict[int, int] = {-1: 0}
    for (stack, name), value in zip(groups.T.tolist(), sums.tolist()):
        if stack not in places:
            node = 0
            for frame in reversed(trace.stack(stack)):
                node = tree.node(node, f"{frame.function} ({frame.file}:{frame.line})", not users[numbers[frame]])
            places[stack] = node
        leaf = tree.node(places[stack], trace.names[name])
        tree.value[leaf] += value
    return tree


def _by_module(analysis: Analysis) -> _Tree:
    tree = _Tree("all")
    modules = analysis.modules
    assert modules is not None

    def add(nodes: Iterable[Any], above: int) -> None:
        for node in nodes:
            here = tree.node(above, node.label or node.path or "model")
            for word, value in (("forward", node.self_forward_ns), ("backward", node.self_backward_ns)):
                if value > 0:
                    tree.value[tree.node(here, word)] += int(value)
            add(node.children, here)

    add(modules.roots, 0)
    outside = modules.outside.self_forward_ns + modules.outside.self_backward_ns
    if outside > 0:
        tree.value[tree.node(0, modules.outside.label or OUTSIDE)] += int(outside)
    return tree


def _by_call(trace: Trace) -> _Tree:
    """By what called what: scopes, ops and the ops inside them."""
    tree = _Tree("all")
    rows, times = _self_times(trace)
    events = trace.events
    parent, names = events["parent"].tolist(), events["name"].tolist()
    places: dict[int, int] = {-1: 0}
    path: list[int] = []
    for row, value in zip(rows.tolist(), times.tolist()):
        at = row
        path.clear()
        while at not in places:
            path.append(at)
            at = parent[at]
        node = places[at]
        for at in reversed(path):
            node = places[at] = tree.node(node, trace.names[names[at]])
        tree.value[node] += int(value)
    return tree
