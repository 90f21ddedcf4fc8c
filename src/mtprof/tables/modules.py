"""The module of each event: by nesting in the forward, by autograd's sequence numbers in the backward."""

from __future__ import annotations

import numpy as np

from ..schema import Kind
from ..trace import Trace
from .links import forward_of
from .nesting import enclosing_rows, parents
from .tree import nearest

ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def with_modules(trace: Trace) -> Trace:
    """The trace with the event column `module`, and the column `parent` of calls of modules.

    What runs in a backward node belongs to the module whose forward recorded the node, unless a module was called
    there, as when a checkpoint computes again. A node that another node recorded belongs to that node's module. No
    forward op records the accumulation of a gradient. It belongs to the module of the node that ran before it, because
    the engine accumulates as soon as the last part of a gradient has come. Modules known from other processes stay.
    """
    calls = dict(trace.module_calls)
    if not len(calls["start_ns"]):
        return trace
    calls["parent"] = parents(calls["thread"], calls["start_ns"], calls["end_ns"])
    events, path = trace.events, trace.modules["path"][calls["module"]]
    row = enclosing_rows(calls, events["thread"], events["start_ns"])
    module = np.where(row >= 0, path[row], events["module"])
    node = nearest(events["parent"], events["kind"] == Kind.BACKWARD)
    origin = np.where(node >= 0, _origins(trace)[node], -1)
    called_inside = (row >= 0) & (node >= 0) & (calls["start_ns"][row] > events["start_ns"][node])
    elsewhere = (origin >= 0) & ~called_inside
    while True:  # one round per order of derivatives
        known = np.where(elsewhere, module[origin], module).astype(np.int32)
        if (known == module).all():
            break
        module = known
    return trace.with_columns("events", module=known).with_tables(module_calls=calls)


def _origins(trace: Trace) -> np.ndarray:
    """For each node that the engine ran, the row of the forward op from which it stems, or -1."""
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
