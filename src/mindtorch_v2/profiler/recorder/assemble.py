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
from .module_calls import MODULE_EVENT
from .module_column import ModuleCalls, with_modules
from .python_stacks import add_python_calls, with_stacks
from .recorder import Piece, Recorder

KIND_OF = {
    "op": Kind.OP,
    "backward": Kind.BACKWARD,
    "backward_function": Kind.BACKWARD_FUNCTION,
    "scope": Kind.SCOPE,
    "scope_internal": Kind.SCOPE,
    "step": Kind.STEP,
    "module": Kind.MODULE,
}


def assemble(recorder: Recorder, *, metadata: dict[str, Any], with_flops: bool = False) -> Trace:
    """The trace of a stopped recorder."""
    build = TraceBuilder()
    known = list(EVENTS)
    names = np.array([build.name(name) for name, *_ in known] or [0], np.int32)
    overloads = np.array([build.name(overload) for _, _, overload, _ in known] or [0], np.int32)
    kinds = np.array([KIND_OF[kind] for _, kind, *_ in known] or [0], np.uint8)
    tables: dict[int, int] = {-1: -1}
    options = recorder.options
    steps_ns = np.array(recorder.steps_ns, np.int64)
    module_calls = ModuleCalls()
    op_times: dict[ThreadInfo, tuple[np.ndarray, np.ndarray]] = {}
    for piece in recorder.pieces:
        events = take_modules(build, piece, module_calls, steps_ns, as_events=options.stacks)
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
            "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
        }
        if options.stacks:
            note_ops(op_times, piece.info, columns)
        if with_flops:
            columns["flops"] = flops_column(known, ids, inputs, build)
        build.add_columns(columns)
    add_memory(build, recorder)
    add_python_calls(build, recorder.calls, steps_ns, op_times)
    trace = build.finish(metadata=metadata, start_ns=recorder.start_ns, end_ns=recorder.end_ns,
                         epoch_ns=recorder.epoch_ns, dropped=recorder.dropped)
    if options.modules:
        trace = with_modules(trace, module_calls)
    return with_stacks(trace) if options.stacks else trace


def take_modules(build: TraceBuilder, piece: Piece, calls: ModuleCalls, steps_ns: np.ndarray, *,
                 as_events: bool) -> list[Any]:
    """The piece's events without calls of modules, which are noted apart and may become events of their own."""
    events = piece.events
    size = len(events) // FIELDS * FIELDS
    if MODULE_EVENT not in events[0:size:FIELDS]:
        return events
    is_module = np.array(events[0:size:FIELDS], np.int64) == MODULE_EVENT
    table = np.empty(size, object)
    table[:] = events[:size]
    table = table.reshape(-1, FIELDS)
    if piece.modules:
        thread = build.thread(piece.info)
        starts, ends, identities = (table[is_module, column].tolist() for column in (1, 2, 4))
        names = calls.add(build, piece, [starts, ends, identities], thread)
        if as_events:
            start = np.array(starts, np.int64)
            build.add_columns({
                "name": names, "kind": np.full(len(names), Kind.MODULE, np.uint8), "start_ns": start,
                "end_ns": np.array(ends, np.int64), "thread": np.full(len(names), thread, np.int32),
                "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
            })
    return table[~is_module].reshape(-1).tolist()


def note_ops(times: dict[ThreadInfo, tuple[np.ndarray, np.ndarray]], info: ThreadInfo,
             columns: dict[str, np.ndarray]) -> None:
    """Remember when ops ran on a thread."""
    ops = columns["kind"] == Kind.OP
    found = (columns["start_ns"][ops], columns["end_ns"][ops])
    if info in times:
        found = (np.concatenate((times[info][0], found[0])), np.concatenate((times[info][1], found[1])))
    times[info] = found


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
