"""From a recorder's lists to a Trace: runs once, after recording, and does the work that recording put off."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..._dispatch.describe import INPUTS
from ..._dispatch.observer import EVENTS, FIELDS
from ..._dtype import FROM_NUMPY
from ..trace import Kind, ThreadInfo, Trace, TraceBuilder
from ..trace.trace import TensorInput
from .flops import flops_of
from .memory import MEMORY_FIELDS
from .recorder import Recorder

KIND_OF = {
    "op": Kind.OP,
    "backward": Kind.BACKWARD,
    "backward_function": Kind.BACKWARD_FUNCTION,
    "scope": Kind.SCOPE,
    "scope_internal": Kind.SCOPE,
    "step": Kind.STEP,
}


def assemble(recorder: Recorder, *, metadata: dict[str, Any], with_flops: bool = False) -> Trace:
    """The trace of a stopped recorder."""
    build = TraceBuilder()
    known = list(EVENTS)
    names = np.array([build.name(name) for name, *_ in known] or [0], np.int32)
    overloads = np.array([build.name(overload) for _, _, overload, _ in known] or [0], np.int32)
    kinds = np.array([KIND_OF[kind] for _, kind, *_ in known] or [0], np.uint8)
    tables: dict[int, int] = {-1: -1}
    for piece in recorder.pieces:
        events = piece.events
        # A thread may be appending its last event right now; whole records only.
        size = len(events) // FIELDS * FIELDS
        ids = np.array(events[0:size:FIELDS], np.int64)
        inputs = inputs_column(build, tables, events[4:size:FIELDS])
        start = np.array(events[1:size:FIELDS], np.int64)
        columns = {
            "name": names[ids],
            "overload": overloads[ids],
            "kind": kinds[ids],
            "start_ns": start,
            "end_ns": np.array(events[2:size:FIELDS], np.int64),
            "sequence": np.array(events[3:size:FIELDS], np.int64),
            "inputs": inputs,
            "thread": np.full(len(ids), build.thread(piece.info), np.int32),
            "step": np.searchsorted(np.array(recorder.steps_ns, np.int64), start, "right").astype(np.int32),
        }
        if with_flops:
            columns["flops"] = flops_column(known, ids, inputs, build)
        build.add_columns(columns)
    add_memory(build, recorder)
    return build.finish(metadata=metadata, start_ns=recorder.start_ns, end_ns=recorder.end_ns,
                        epoch_ns=recorder.epoch_ns, dropped=recorder.dropped)


def add_memory(build: TraceBuilder, recorder: Recorder) -> None:
    """The memory changes of a recorder, with running totals."""
    if not recorder.memory:
        return
    changes = np.array(recorder.memory, np.int64).reshape(-1, MEMORY_FIELDS)
    threads = {piece.ident: build.thread(piece.info) for piece in recorder.pieces}
    fallback = build.thread(recorder.pieces[0].info) if recorder.pieces else build.thread(ThreadInfo(os.getpid(), 0))
    build.add_memory_columns({
        "time_ns": changes[:, 0],
        "thread": np.array([threads.get(ident, fallback) for ident in changes[:, 1].tolist()], np.int32),
        "size_bytes": changes[:, 2],
        "address": changes[:, 3],
        "total_bytes": np.cumsum(changes[:, 2]),
    })


def inputs_column(build: TraceBuilder, tables: dict[int, int], noted: list[Any]) -> np.ndarray:
    """Numbers into the trace's own table, which holds only the descriptions this recording uses."""
    numbers = np.array([-1 if n is None else n for n in noted], np.int64)
    used, position = np.unique(numbers, return_inverse=True)
    for number in used.tolist():
        if number not in tables:
            tables[number] = len(build.inputs)
            build.inputs.append(tuple(argument(value) for value in INPUTS[number]))
    return np.array([tables[n] for n in used.tolist()], np.int32)[position.reshape(-1)]


def argument(value: Any) -> Any:
    """A described argument in the trace's terms."""
    if type(value) is tuple:
        if len(value) == 3 and isinstance(value[1], np.dtype):
            shape, dtype, strides = value
            known = FROM_NUMPY.get(dtype)
            return TensorInput(shape, known.name if known is not None else str(dtype),
                               tuple(s // dtype.itemsize for s in strides))
        return [argument(item) for item in value]
    return value


def flops_column(known: list[Any], ids: np.ndarray, inputs: np.ndarray, build: TraceBuilder) -> np.ndarray:
    """FLOPs per event; each distinct (op, inputs) pair is computed once."""
    pairs, position = np.unique(np.stack([ids, inputs.astype(np.int64)]), axis=1, return_inverse=True)
    values = [flops_of(known[event][3], build.inputs[given]) if given >= 0 and known[event][3] is not None else -1
              for event, given in pairs.T.tolist()]
    return np.array(values, np.int64)[position.reshape(-1)]
