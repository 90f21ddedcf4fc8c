"""Which module each event ran in: by nesting in the forward, by autograd's sequence numbers in the backward."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mtprof.builder import TraceBuilder
from mtprof.schema import TABLES, Kind
from mtprof.tables.links import forward_of
from mtprof.tables.nesting import enclosing_rows, parents
from mtprof.tables.tree import nearest
from mtprof.trace import Trace, empty_table

from ..sources.ops import Piece

ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


@dataclass
class ModuleCalls:
    """Calls of modules on all threads, as columns, and the modules; `path` points into the names of the trace."""

    thread: list[np.ndarray] = field(default_factory=list)
    start_ns: list[np.ndarray] = field(default_factory=list)
    end_ns: list[np.ndarray] = field(default_factory=list)
    path: list[np.ndarray] = field(default_factory=list)
    modules: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # by path: label, path around it, parameters

    def add(self, build: TraceBuilder, piece: Piece, rows: list[np.ndarray], thread: int) -> np.ndarray:
        """Take the calls of a piece, given as `[starts, ends, identities]`; returns their event names."""
        starts, ends, identities = rows
        known, number = np.unique(identities, return_inverse=True)
        names = [piece.modules[identity] for identity in known.tolist()]
        number = number.reshape(-1)
        self.thread.append(np.full(len(starts), thread, np.int32))
        self.start_ns.append(starts)
        self.end_ns.append(ends)
        self.path.append(np.array([build.name(name.path) for name in names], np.int32)[number])
        for name in piece.modules.values():
            above = piece.modules.get(name.parent) if name.parent is not None else None
            # A part that has the name of its model's class is not told apart from the model, and not put inside itself.
            inside = above is not None and above.path != name.path
            self.modules.setdefault(build.name(name.path), (
                build.name(name.label), build.name(above.path) if above and inside else -1, name.parameters))
        return np.array([build.name(f"nn.Module: {name.label}") for name in names], np.int32)[number]

    def columns(self) -> dict[str, np.ndarray]:
        """The calls sorted as a trace's rows, with their parents."""
        result = {key: np.concatenate(getattr(self, key)) for key in ("thread", "start_ns", "end_ns", "path")}
        order = np.lexsort((-result["end_ns"], result["start_ns"], result["thread"]))
        result = {key: value[order] for key, value in result.items()}
        result["parent"] = parents(result["thread"], result["start_ns"], result["end_ns"])
        return result

    def table(self) -> dict[str, np.ndarray]:
        """The modules, in order of their first call."""
        rows = {path: row for row, path in enumerate(self.modules)} | {-1: -1}
        label, above, parameters = zip(*self.modules.values())
        return {"path": np.array(list(self.modules), np.int32), "label": np.array(label, np.int32),
                "parent": np.array([rows[path] for path in above], np.int32),
                "parameters": np.array(parameters, np.int64)}


def with_modules(trace: Trace, calls: ModuleCalls) -> Trace:
    """The trace with its `module` column filled.

    What runs in a backward node belongs to the module whose forward recorded the node, unless a module was called in
    there, as when a checkpoint computes again. A node that another node recorded belongs to that one's module. No
    forward op records the accumulation of a gradient; it belongs to the module of the node that ran before it, since
    the engine accumulates as soon as the last part of a gradient has come.
    """
    if not calls.path:
        return trace.with_tables(**{name: empty_table(TABLES[name]) for name in ("modules", "module_calls")})
    events, called = trace.events, calls.columns()
    row = enclosing_rows(called, events["thread"], events["start_ns"])
    module = np.where(row >= 0, called["path"][row], -1)
    node = nearest(events["parent"], events["kind"] == Kind.BACKWARD)
    origin = np.where(node >= 0, _origins(trace)[node], -1)
    called_inside = (row >= 0) & (node >= 0) & (called["start_ns"][row] > events["start_ns"][node])
    elsewhere = (origin >= 0) & ~called_inside
    while True:  # a round per order of derivatives
        known = np.where(elsewhere, module[origin], module).astype(np.int32)
        if (known == module).all():
            break
        module = known
    modules = calls.table()
    order = np.argsort(modules["path"])
    called["module"] = order[np.searchsorted(modules["path"], called.pop("path"), sorter=order)].astype(np.int32)
    return trace.with_columns("events", module=module).with_tables(modules=modules, module_calls=called)


def _origins(trace: Trace) -> np.ndarray:
    """For each node that the engine ran, the row of the forward op it stems from, or -1."""
    events = trace.events
    origin = forward_of(trace)
    accumulates = np.array([name == ACCUMULATE for name in trace.names], bool)[events["name"]]
    nodes = np.flatnonzero(events["kind"] == Kind.BACKWARD)
    if len(nodes):
        before = np.maximum.accumulate(np.where(accumulates[nodes], -1, np.arange(len(nodes))))
        source = nodes[np.maximum(before, 0)]
        fits = accumulates[nodes] & (before >= 0) & (events["thread"][source] == events["thread"][nodes])
        origin[nodes[fits]] = origin[source[fits]]
    return origin
