"""From a recorder's lists to a Trace: runs once, after recording, and does the work that recording put off."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from ..._dispatch.describe import INPUTS
from ..._dispatch.observer import EVENTS, FIELDS
from ..._dispatch.registry import OVERLOADS
from ..._dtype import FROM_NUMPY
from ..trace import Kind, ThreadInfo, Trace, TraceBuilder
from ..trace.trace import Arguments, TensorInput
from .buffers import columns_of
from .flops import flops_of
from .gc_pauses import add_pauses
from .module_calls import MODULE_EVENT
from .module_column import ModuleCalls, with_modules
from .open_scopes import ends
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

# Which arguments in-place ops change besides the first, as their signatures say.
ALSO_WRITTEN = {
    "aten::_amp_foreach_non_finite_check_and_unscale_": (1,), "aten::_amp_update_scale_": (1,),
    "aten::_fused_adagrad_": (1, 2, 3), "aten::_fused_adam_": (1, 2, 3, 4), "aten::_fused_adamw_": (1, 2, 3, 4),
    "aten::_fused_sgd_": (1, 2),
}


def assemble(recorder: Recorder, *, metadata: dict[str, Any], with_flops: bool = False) -> Trace:
    """The trace of a stopped recorder."""
    build = TraceBuilder()
    known = list(EVENTS)
    names = np.array([build.name(name) for name, *_ in known] or [0], np.int32)
    overloads = np.array([build.name(overload) for _, _, overload, _ in known] or [0], np.int32)
    kinds = np.array([int(KIND_OF[kind]) for _, kind, *_ in known] or [0], np.uint8)
    tables: dict[int, int] = {-1: -1}
    options = recorder.options
    steps_ns = np.array(recorder.steps_ns, np.int64)
    module_calls = ModuleCalls()
    for piece in recorder.pieces:
        ids, start, end, sequence, noted, record_ids = take_modules(build, piece, module_calls, steps_ns,
                                                                    as_events=options.stacks)
        inputs = inputs_column(build, tables, noted)
        columns = {
            "name": names[ids],
            "overload": overloads[ids],
            "kind": kinds[ids],
            "start_ns": start,
            "end_ns": end,
            "sequence": sequence,
            "inputs": inputs,
            "thread": np.full(len(ids), build.thread(piece.info), np.int32),
            "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
            "record_id": record_ids,
        }
        if with_flops:
            columns["flops"] = flops_column(known, ids, inputs, build)
        build.add_columns(columns)
    add_open_scopes(build, recorder, steps_ns)
    add_memory(build, recorder)
    add_failures(build, recorder)
    add_uses(build, recorder)
    add_pauses(build, recorder.pauses, steps_ns)
    add_python_calls(build, recorder.calls, steps_ns, lambda thread: spans_of(recorder.pieces, thread))
    trace = build.finish(metadata=metadata, start_ns=recorder.start_ns, end_ns=recorder.end_ns,
                         epoch_ns=recorder.epoch_ns, dropped=recorder.dropped)
    if len(trace.uses["row"]):
        trace = replace(trace, uses={**trace.uses, "written": written(trace)})
    if options.modules:
        trace = with_modules(trace, module_calls)
    return with_stacks(trace) if options.stacks else trace


def add_open_scopes(build: TraceBuilder, recorder: Recorder, steps_ns: np.ndarray) -> None:
    """The scopes that had not ended when the recording did."""
    scopes = recorder.open_scopes
    until = ends(scopes, lambda thread: spans_of(recorder.pieces, thread), recorder.end_ns)
    for scope, end_ns in zip(scopes, until, strict=True):
        name, kind, *_ = EVENTS[scope.event]
        build.add(name=name, kind=KIND_OF[kind], start_ns=scope.start_ns, end_ns=end_ns,
                  thread=build.thread(scope.thread), step=int(np.searchsorted(steps_ns, scope.start_ns, "right")))


def spans_of(pieces: list[Piece], thread: ThreadInfo) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of all that a thread reported."""
    nothing = np.zeros(0, np.int64)  # a thread that only collected garbage
    found = [columns_of(piece.events)[1:3] for piece in pieces if piece.info == thread]
    return (np.concatenate([nothing, *(start for start, _ in found)]),
            np.concatenate([nothing, *(end for _, end in found)]))


def take_modules(build: TraceBuilder, piece: Piece, calls: ModuleCalls, steps_ns: np.ndarray, *,
                 as_events: bool) -> tuple[np.ndarray, ...]:
    """The columns of a piece without calls of modules, which are noted apart and may become events of their own."""
    fields = columns_of(piece.events)
    fields = (*fields, record_ids_of(piece, len(fields[0])))
    is_module = fields[0] == MODULE_EVENT
    if not is_module.any():
        return fields
    if piece.modules:
        thread = build.thread(piece.info)
        start, end, identity = (fields[column][is_module] for column in (1, 2, 4))
        names = calls.add(build, piece, [start, end, identity], thread)
        if as_events:
            build.add_columns({
                "name": names, "kind": np.full(len(names), Kind.MODULE, np.uint8), "start_ns": start,
                "end_ns": end, "thread": np.full(len(names), thread, np.int32),
                "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
            })
    return tuple(column[~is_module] for column in fields)


def record_ids_of(piece: Piece, count: int) -> np.ndarray:
    """The numbers that an execution trace gave to the events of a piece, 0 where it gave none."""
    result = np.zeros(count, np.int64)
    if piece.record_ids:
        length = np.array(list(piece.record_ids), np.int64) - piece.begin
        row = length // (FIELDS if isinstance(piece.events, list) else 1) - 1
        inside = (row >= 0) & (row < count)
        result[row[inside]] = np.array(list(piece.record_ids.values()), np.int64)[inside]
    return result


def add_memory(build: TraceBuilder, recorder: Recorder) -> None:
    """The memory changes of a recorder, with running totals."""
    if not recorder.memory:
        return
    time, thread, size, identity = (np.concatenate(column) for column in zip(*recorder.memory))
    if not len(time):
        return
    build.add_memory_columns({
        "time_ns": time,
        "thread": threads_of(build, recorder.pieces, thread, time),
        "size_bytes": size,
        "address": identity,
        "total_bytes": totals(recorder),
    })


def totals(recorder: Recorder) -> np.ndarray:
    """What is allocated after each memory change: what earlier recordings saw and is still there, and all since."""
    return np.concatenate([base + np.cumsum(changes[2])
                           for base, changes in zip(recorder.memory_bases, recorder.memory, strict=True)])


def add_failures(build: TraceBuilder, recorder: Recorder) -> None:
    """The allocations that failed, with what was allocated at that time."""
    if not recorder.failures:
        return
    time, thread, size = np.array(recorder.failures, np.int64).T
    changed = np.concatenate([changes[0] for changes in recorder.memory])
    order = np.argsort(changed, kind="stable")
    total = np.append(totals(recorder)[order], recorder.memory_bases[0])  # the last entry is that of -1
    build.add_failure_columns({
        "time_ns": time, "thread": threads_of(build, recorder.pieces, thread, time), "size_bytes": size,
        "total_bytes": total[np.searchsorted(changed[order], time, "right") - 1],
    })


def add_uses(build: TraceBuilder, recorder: Recorder) -> None:
    """Which memory ops had as arguments, which tensors changed it, and what modules and optimizers said it is."""
    if recorder.uses:
        time, thread, position, identity, size, tensor = (np.concatenate(column) for column in zip(*recorder.uses))
        build.add_use_columns(threads_of(build, recorder.pieces, thread, time), time,
                              {"argument": position, "address": identity, "size_bytes": size, "tensor": tensor})
    if recorder.moves:
        time, tensor, before, after = np.array(recorder.moves, np.int64).T
        build.add_move_columns({"time_ns": time, "tensor": tensor, "address": before, "new_address": after})
    if recorder.owners:
        time, identity, size, role = (np.concatenate(column) for column in zip(*recorder.owners))
        build.add_role_columns({"time_ns": time, "address": identity, "size_bytes": size, "role": role})


def written(trace: Trace) -> np.ndarray:
    """Whether each use is a change: of the first argument of an in-place op, of some others, or of a given output."""
    row = trace.uses["row"]
    facts = np.stack((trace.events["name"][row], trace.events["overload"][row], trace.uses["argument"]))
    distinct, which = np.unique(facts, axis=1, return_inverse=True)
    changes = [_is_written(trace.names[name], trace.names[overload], argument)
               for name, overload, argument in distinct.T.tolist()]
    return np.array(changes, np.uint8)[which.reshape(-1)]


def _is_written(name: str, overload: str, argument: int) -> bool:
    if name.endswith("_") and not name.endswith("__"):
        return argument == 0 or argument in ALSO_WRITTEN.get(name, ())
    # What is given as `out` follows the arguments.
    return any(overload in (op.overload, op.scalar_overload) and argument >= len(op.schema.arguments)
               for op in OVERLOADS.get(name.removeprefix("aten::"), ()))


def threads_of(build: TraceBuilder, pieces: list[Piece], ident: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The thread of each memory change. Python gives the ident of a thread that ended to a new one, so time decides."""
    fallback = build.thread(pieces[0].info) if pieces else build.thread(ThreadInfo(os.getpid(), 0))
    result = np.full(len(ident), fallback, np.int32)
    by_ident: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_ident.setdefault(piece.ident, []).append(piece)
    for number, candidates in by_ident.items():
        rows = np.flatnonzero(ident == number)
        if len(candidates) == 1:
            result[rows] = build.thread(candidates[0].info)
            continue
        begins = [int(columns_of(piece.events)[1].min()) for piece in candidates]
        order = np.argsort(begins)
        threads = np.array([build.thread(candidates[i].info) for i in order.tolist()], np.int32)
        position = np.searchsorted(np.sort(begins), time[rows], "right") - 1
        result[rows] = threads[np.maximum(position, 0)]
    return result


def inputs_column(build: TraceBuilder, tables: dict[int, int], noted: np.ndarray) -> np.ndarray:
    """Numbers into the trace's own table, which holds only the descriptions this recording uses."""
    used, position = np.unique(noted, return_inverse=True)
    for number in used.tolist():
        if number not in tables:
            tables[number] = len(build.inputs)
            build.inputs.append(arguments(INPUTS[number]))
    return np.array([tables[n] for n in used.tolist()], np.int32)[position.reshape(-1)]


def arguments(described: tuple[Any, ...]) -> tuple[Any, ...]:
    """Described arguments in the trace's terms."""
    values = tuple(argument(value) for value in described)
    return Arguments(values, described.named) if isinstance(described, Arguments) else values


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
