"""Flame graphs: time by Python stack and by module, as trees of names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..analysis import Analysis
from ..analysis.places import is_users
from ..schema import DEVICE_KINDS, PYTHON_KINDS, Kind
from ..tables.distinct import distinct
from ..trace import Trace
from ..views.module_tree import OUTSIDE
from .phases import PHASES, phases

MOST_NODES = 60_000
PYTHON, OTHER = PHASES.index("python"), PHASES.index("other")


class _Tree:
    """Nodes as columns: the node above, a name, the time of the node itself, when it first ran."""

    def __init__(self, root: str) -> None:
        self.names: dict[str, int] = {root: 0}
        self.parent, self.name, self.value, self.library = [-1], [0], [0], [0]
        self.phase, self.first = [OTHER], [0]
        self._known: dict[tuple[int, int, int], int] = {}

    def node(self, above: int, text: str, phase: int, first: int = 0, library: bool = False) -> int:
        """The node of a name below another; `first` is the place of its first event in time."""
        word = self.names.setdefault(text, len(self.names))
        found = self._known.get((above, word, phase))
        if found is None:
            found = self._known[above, word, phase] = len(self.parent)
            self.phase.append(phase)
            self.first.append(first)
            self.parent.append(above)
            self.name.append(word)
            self.value.append(0)
            self.library.append(int(library))
        elif first < self.first[found]:
            self.first[found] = first
        return found

    def columns(self) -> dict[str, Any]:
        """The tree for the page; the smallest nodes are left out if there are too many."""
        total = np.array(self.value, np.int64)
        for place in range(len(total) - 1, 0, -1):  # a node comes after the one above it
            total[self.parent[place]] += total[place]
        kept = np.arange(len(total))
        order = np.empty(len(total), np.int64)
        order[np.argsort(self.first, kind="stable")] = np.arange(len(total))
        if len(total) > MOST_NODES:
            kept = np.sort(np.argpartition(-total, MOST_NODES)[:MOST_NODES])
        place = np.full(len(total), -1)
        place[kept] = np.arange(len(kept))
        parent = np.array(self.parent)[kept]
        return {"parent": np.where(parent >= 0, place[parent], -1).tolist(), "name": np.array(self.name)[kept].tolist(),
                "total": total[kept].tolist(), "library": np.array(self.library)[kept].tolist(),
                "phase": np.array(self.phase)[kept].tolist(), "order": order[kept].tolist(), "phases": list(PHASES),
                "names": list(self.names), "left_out": int(len(total) - len(kept))}


def flames_of(analysis: Analysis) -> dict[str, Any]:
    """The graphs for which the recording has evidence."""
    trace = analysis.trace
    phase = phases(trace)
    found = {}
    if trace.has("stacks") and (trace.events["stack"] >= 0).any():
        found["stack"] = _by_stack(trace, phase).columns()
    if analysis.modules is not None:
        found["module"] = _by_module(analysis).columns()
    found["call"] = _by_call(trace, phase).columns()
    return found


def _self_times(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """The host's ops and scopes without steps, and the self time of each, in order of time."""
    events = trace.events
    rows = np.flatnonzero(~np.isin(events["kind"], (*PYTHON_KINDS, *DEVICE_KINDS, Kind.STEP)) & (events["device"] == 0))
    rows = rows[np.argsort(events["start_ns"][rows], kind="stable")]
    return rows, trace.self_ns()[rows]


def _by_stack(trace: Trace, phase: np.ndarray) -> _Tree:
    tree = _Tree("all")
    rows, times = _self_times(trace)
    events = trace.events
    keys = np.stack([events["stack"][rows], events["name"][rows], phase[rows]])
    which, first = distinct(keys)
    sums = np.bincount(which, times, len(first)).astype(np.int64)
    users = [is_users(frame) for frame in trace.frames]
    numbers = {frame: place for place, frame in enumerate(trace.frames)}
    for (stack, name, what), value, start in zip(keys[:, first].T.tolist(), sums.tolist(), first.tolist()):
        node = 0
        for frame in reversed(trace.stack(stack)) if stack >= 0 else ():
            where = f" ({frame.file}:{frame.line})" if frame.file else ""
            node = tree.node(node, frame.function + where, PYTHON, start, not users[numbers[frame]])
        leaf = tree.node(node, trace.names[name], what, start)
        tree.value[leaf] += value
    return tree


def _by_module(analysis: Analysis) -> _Tree:
    tree = _Tree("all")
    modules = analysis.modules
    assert modules is not None

    def add(nodes: Iterable[Any], above: int) -> None:
        for node in nodes:
            here = tree.node(above, node.label or node.path or "model", PYTHON, len(tree.parent))
            for word, value in (("forward", node.self_forward_ns), ("backward", node.self_backward_ns)):
                if value > 0:
                    tree.value[tree.node(here, word, PHASES.index(word), len(tree.parent))] += int(value)
            add(node.children, here)

    add(modules.roots, 0)
    outside = modules.outside.self_forward_ns + modules.outside.self_backward_ns
    if outside > 0:
        tree.value[tree.node(0, modules.outside.label or OUTSIDE, OTHER, len(tree.parent))] += int(outside)
    return tree


def _by_call(trace: Trace, phase: np.ndarray) -> _Tree:
    """By call: scopes, ops and the ops inside them."""
    tree = _Tree("all")
    rows, times = _self_times(trace)
    events = trace.events
    parent, names, what = events["parent"].tolist(), events["name"].tolist(), phase.tolist()
    step = (events["kind"] == Kind.STEP).tolist()
    places: dict[int, int] = {-1: 0}
    path: list[int] = []
    for start, (row, value) in enumerate(zip(rows.tolist(), times.tolist())):
        at = row
        path.clear()
        while at not in places:
            path.append(at)
            at = parent[at]
        node = places[at]
        for at in reversed(path):
            node = places[at] = node if step[at] else tree.node(node, trace.names[names[at]], what[at], start)
        tree.value[node] += int(value)
    return tree
