"""Makes a Trace from a recorder's lists: runs once, after recording, and does the work that recording put off."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mtprof.builder import TraceBuilder
from mtprof.schema import Kind
from mtprof.tables import derived
from mtprof.tables.distinct import distinct
from mtprof.trace import Arguments, TensorInput, ThreadInfo, Trace

from ..._dispatch.describe import INPUTS
from ..._dispatch.observer import EVENTS, FIELDS, LINE_BITS
from ..._dispatch.overload_names import overload_name
from ..._dispatch.registry import OVERLOADS
from ..._dtype import FROM_NUMPY
from ..device_work import DeviceWatch
from ..sources.buffers import columns_of
from ..sources.garbage import add_pauses
from ..sources.memory import MemoryPart
from ..sources.modules import MODULE_EVENT
from ..sources.ops import Piece
from ..sources.scopes import ends
from ..sources.tensors import parted
from .as_declared import as_declared
from .collectives import add_collectives
from .flops import flops_of
from .module_column import ModuleCalls
from .python_stacks import add_python_calls
from .recorder import Recorder

MOST = np.iinfo(np.int64).max
KIND_OF = {
    "op": Kind.OP,
    "backward": Kind.BACKWARD,
    "backward_function": Kind.BACKWARD_FUNCTION,
    "scope": Kind.SCOPE,
    "scope_internal": Kind.SCOPE,
    "step": Kind.STEP,
    "module": Kind.MODULE,
    "first_use": Kind.FIRST_USE,
}

# The arguments that in-place ops change besides the first, as in their signatures.
ALSO_WRITTEN = {
    "aten::_amp_foreach_non_finite_check_and_unscale_": (1,), "aten::_amp_update_scale_": (1,),
    "aten::_fused_adagrad_": (1, 2, 3), "aten::_fused_adam_": (1, 2, 3, 4), "aten::_fused_adamw_": (1, 2, 3, 4),
    "aten::_fused_sgd_": (1, 2),
}


def assemble(recorder: Recorder, *, metadata: dict[str, Any], with_flops: bool = False,
             devices: DeviceWatch | None = None, whole: bool = True) -> Trace:
    """The trace of a stopped recorder. Parts that go to a file are completed when the file is read."""
    build = TraceBuilder()
    known = list(EVENTS)
    names = np.array([build.name(name) for name, *_ in known] or [0], np.int32)
    overloads = np.array([build.name(overload) for _, _, overload, _ in known] or [0], np.int32)
    kinds = np.array([int(KIND_OF[kind]) for _, kind, *_ in known] or [0], np.uint8)
    tables = Tables()
    options = recorder.options
    steps_ns = np.array(recorder.steps_ns, np.int64)
    module_calls = ModuleCalls()
    pieces = pieces_of(recorder)
    for piece in pieces:
        ids, start, end, sequence, noted, record_ids = take_modules(build, piece, module_calls, steps_ns,
                                                                    since_ns=recorder.start_ns,
                                                                    as_events=options.stacks)
        inputs = inputs_column(build, tables, known, ids, noted)
        line = (sequence + 1) >> LINE_BITS
        columns = {
            "name": names[ids],
            "overload": overloads[ids],
            "kind": kinds[ids],
            "start_ns": start,
            "end_ns": end,
            "sequence": sequence - (line << LINE_BITS),
            "line": line.astype(np.int32),
            "inputs": inputs,
            "thread": np.full(len(ids), build.thread(piece.info), np.int32),
            "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
            "record_id": record_ids,
        }
        if with_flops:
            columns["flops"] = flops_column(known, ids, inputs, build)
        build.add_columns("events", columns)
    add_open_scopes(build, recorder, steps_ns)
    add_memory(build, recorder)
    add_failures(build, recorder)
    if devices is not None:
        devices.add_to(build, lambda ident, time: threads_of(build, pieces, ident, time), steps_ns)
    add_collectives(build, recorder, steps_ns,
                    lambda ident, time: threads_of(build, pieces, ident, time))
    add_uses(build, recorder)
    if recorder.taken("holders"):
        recorder.taken("holders")[-1].add_to(build)
    add_pauses(build, recorder.taken("garbage"), steps_ns)
    add_python_calls(build, [piece for part in recorder.taken("calls") for piece in part], steps_ns,
                     Spans(pieces))
    if options.modules:
        module_calls.add_to(build)
    trace = build.finish(metadata=metadata, start_ns=recorder.start_ns, end_ns=recorder.end_ns,
                         epoch_ns=recorder.epoch_ns, dropped=recorder.dropped)
    if len(trace.optional("uses")["row"]):
        trace = trace.with_columns("uses", written=written(trace))
    return derived.completed(trace, with_stack=options.stacks) if whole else trace


def pieces_of(recorder: Recorder) -> list[Piece]:
    """What threads reported, in all stretches."""
    return [piece for part in recorder.taken("ops") for piece in part]


def add_open_scopes(build: TraceBuilder, recorder: Recorder, steps_ns: np.ndarray) -> None:
    """The scopes that had not ended when the recording did."""
    scopes = [scope for part in recorder.taken("scopes") for scope in part]
    until = ends(scopes, Spans(pieces_of(recorder)), recorder.end_ns)
    for scope, end_ns in zip(scopes, until, strict=True):
        name, kind, *_ = EVENTS[scope.event]
        build.add(name=name, kind=KIND_OF[kind], start_ns=scope.start_ns, end_ns=end_ns,
                  thread=build.thread(scope.thread), step=int(np.searchsorted(steps_ns, scope.start_ns, "right")))


class Spans:
    """Starts and ends of everything that a thread reported; threads are found by what a trace knows about them."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces: dict[ThreadInfo, list[Piece]] = {}
        for piece in pieces:
            self.pieces.setdefault(piece.info, []).append(piece)
        self.known: dict[ThreadInfo, tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, thread: ThreadInfo) -> tuple[np.ndarray, np.ndarray]:
        if thread not in self.known:
            nothing = np.zeros(0, np.int64)  # a thread that only collected garbage
            found = [columns_of(piece.events)[1:3] for piece in self.pieces.get(thread, ())]
            self.known[thread] = (np.concatenate([nothing, *(start for start, _ in found)]),
                                  np.concatenate([nothing, *(end for _, end in found)]))
        return self.known[thread]


def take_modules(build: TraceBuilder, piece: Piece, calls: ModuleCalls, steps_ns: np.ndarray, *, since_ns: int,
                 as_events: bool) -> tuple[np.ndarray, ...]:
    """The columns of a piece without calls of modules, which are kept separately and may become events of their own.

    What began before the recording is left out, such as a scope that an earlier recording left open.
    """
    fields = columns_of(piece.events)
    fields = (*fields, record_ids_of(piece, len(fields[0])))
    early = fields[1] < since_ns
    if early.any():
        fields = tuple(column[~early] for column in fields)
    # A sane system's clock never goes back, but the clock of a machine that is moved while it runs may.
    fields = (*fields[:2], np.maximum(fields[1], fields[2]), *fields[3:])
    is_module = fields[0] == MODULE_EVENT
    if not is_module.any():
        return fields
    if piece.modules:
        thread = build.thread(piece.info)
        # A module that another thread called for the first time during the look-up of names has none.
        named = is_module & np.isin(fields[4], np.fromiter(piece.modules, np.int64, len(piece.modules)))
        start, end, identity = (fields[column][named] for column in (1, 2, 4))
        names = calls.add(build, piece, [start, end, identity], thread)
        if as_events:
            build.add_columns("events", {
                "name": names, "kind": np.full(len(names), Kind.MODULE, np.uint8), "start_ns": start,
                "end_ns": end, "thread": np.full(len(names), thread, np.int32),
                "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
            })
    return tuple(column[~is_module] for column in fields)


def record_ids_of(piece: Piece, count: int) -> np.ndarray:
    """The numbers that an execution trace gave to the events of a piece; 0 if none."""
    result = np.zeros(count, np.int64)
    if piece.record_ids:
        length = np.array(list(piece.record_ids), np.int64) - piece.begin
        row = length // (FIELDS if isinstance(piece.events, list) else 1) - 1
        inside = (row >= 0) & (row < count)
        result[row[inside]] = np.array(list(piece.record_ids.values()), np.int64)[inside]
    return result


def add_memory(build: TraceBuilder, recorder: Recorder) -> None:
    """The memory changes of a recorder, with running totals."""
    parts = recorder.taken("memory")
    if not parts:
        return
    build.add_columns("memory", {})
    build.add_columns("failures", {})
    time, thread, size, identity = (np.concatenate(column) for column in zip(*(part.changes for part in parts)))
    if not len(time):
        return
    build.add_columns("memory", {
        "time_ns": time,
        "thread": threads_of(build, pieces_of(recorder), thread, time),
        "size_bytes": size,
        "address": identity,
        "total_bytes": totals(parts),
    })


def totals(parts: list[MemoryPart]) -> np.ndarray:
    """The bytes allocated after each memory change: what earlier recordings saw and is still there, and all since."""
    return np.concatenate([part.live_bytes + np.cumsum(part.changes[2]) for part in parts])


def add_failures(build: TraceBuilder, recorder: Recorder) -> None:
    """The allocations that failed, with the bytes allocated at that time."""
    parts = recorder.taken("memory")
    failures = [failure for part in parts for failure in part.failures]
    if not failures:
        return
    time, thread, size = np.array(failures, np.int64).T
    changed = np.concatenate([part.changes[0] for part in parts])
    order = np.argsort(changed, kind="stable")
    total = np.append(totals(parts)[order], parts[0].live_bytes)  # the last entry is that of -1
    build.add_columns("failures", {
        "time_ns": time, "thread": threads_of(build, pieces_of(recorder), thread, time), "size_bytes": size,
        "total_bytes": total[np.searchsorted(changed[order], time, "right") - 1],
    })


def add_uses(build: TraceBuilder, recorder: Recorder) -> None:
    """The memory of ops' arguments, the tensors that moved, and the roles that modules and optimizers stated."""
    parts = recorder.taken("tensors")
    if not parts:
        return
    time, thread, place, identity, size, tensor = (np.concatenate(column)
                                                   for column in zip(*(part.uses for part in parts)))
    position, device, index = parted(place)
    build.add_columns("uses", {
        "thread": threads_of(build, pieces_of(recorder), thread, time), "time_ns": time, "argument": position,
        "address": identity, "size_bytes": size, "tensor": tensor, "device": device, "device_index": index})
    build.add_columns("moves", {})
    moves = [move for part in parts for move in part.moves]
    if moves:
        time, tensor, before, after = np.array(moves, np.int64).T
        build.add_columns("moves", {"time_ns": time, "tensor": tensor, "address": before, "new_address": after})
    owners = [part.owners for part in parts if part.owners is not None]
    if owners and recorder.options.timeline:
        time, place, identity, size = (np.concatenate(column) for column in zip(*owners))
        role, device, index = parted(place)
        build.add_columns("roles", {"time_ns": time, "address": identity, "size_bytes": size, "role": role,
                                    "device": device, "device_index": index})


def written(trace: Trace) -> np.ndarray:
    """Whether each use is a change: of the first argument of an in-place op, of some others, or of an `out`."""
    row = trace.uses["row"]
    facts = np.stack((trace.events["name"][row], trace.events["overload"][row], trace.uses["argument"]))
    which, first = distinct(facts)
    changes = [_is_written(trace.names[name], trace.names[overload], argument)
               for name, overload, argument in facts[:, first].T.tolist()]
    return np.array(changes, np.uint8)[which]


def _is_written(name: str, overload: str, argument: int) -> bool:
    if name.endswith("_") and not name.endswith("__"):
        return argument == 0 or argument in ALSO_WRITTEN.get(name, ())
    # An `out` follows the arguments.
    return any(overload in (overload_name(op), op.scalar_overload) and argument >= len(op.schema.arguments)
               for op in OVERLOADS.get(name.removeprefix("aten::"), ()))


def threads_of(build: TraceBuilder, pieces: list[Piece], ident: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The thread of each memory change. Python reuses the ident of a thread that ended, so the time decides."""
    fallback = build.thread(pieces[0].info) if pieces else build.thread(ThreadInfo(os.getpid(), 0))
    result = np.full(len(ident), fallback, np.int32)
    by_ident: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_ident.setdefault(piece.ident, []).append(piece)
    order = np.argsort(ident, kind="stable")
    begins_at = np.searchsorted(ident[order], list(by_ident), "left")
    ends_at = np.searchsorted(ident[order], list(by_ident), "right")
    for candidates, low, high in zip(by_ident.values(), begins_at.tolist(), ends_at.tolist(), strict=True):
        rows = order[low:high]
        if not len(rows):
            continue
        if len(candidates) == 1:
            result[rows] = build.thread(candidates[0].info)
            continue
        begins = [int(columns_of(piece.events)[1].min(initial=MOST)) for piece in candidates]
        by_begin = np.argsort(begins)
        threads = np.array([build.thread(candidates[i].info) for i in by_begin.tolist()], np.int32)
        position = np.searchsorted(np.sort(begins), time[rows], "right") - 1
        result[rows] = threads[np.maximum(position, 0)]
    return result


class Tables:
    """The rows of the trace's own table of inputs: by the number of a description, and by what it says."""

    def __init__(self) -> None:
        self.as_noted: dict[int, int] = {-1: -1}
        self.as_declared: dict[tuple[str, str, int], int] = {}


def inputs_column(build: TraceBuilder, tables: Tables, known: list[Any], ids: np.ndarray,
                  noted: np.ndarray) -> np.ndarray:
    """Numbers into the trace's own table, which holds only the descriptions that this recording uses."""
    pairs = np.stack([ids.astype(np.int64), noted.astype(np.int64)])
    which, first = distinct(pairs)
    rows = [_inputs_row(build, tables, known[event], number) for event, number in pairs[:, first].T.tolist()]
    return np.array(rows, np.int32)[which]


def _inputs_row(build: TraceBuilder, tables: Tables, event: Any, number: int) -> int:
    if number not in tables.as_noted:
        tables.as_noted[number] = len(build.inputs)
        build.inputs.append(arguments(INPUTS[number]))
    row = tables.as_noted[number]
    name, kind, overload, _ = event
    if row < 0 or kind != "op":
        return row
    key = (name, overload, number)
    if key not in tables.as_declared:
        made = as_declared(name, overload, build.inputs[row])
        tables.as_declared[key] = row if made is build.inputs[row] else len(build.inputs)
        if made is not build.inputs[row]:
            build.inputs.append(made)
    return tables.as_declared[key]


def arguments(described: tuple[Any, ...]) -> tuple[Any, ...]:
    """Described arguments in the trace's form."""
    values = tuple(argument(value) for value in described)
    return Arguments(values, described.named) if isinstance(described, Arguments) else values


def argument(value: Any) -> Any:
    """A described argument in the trace's form."""
    if type(value) is tuple:
        if len(value) == 3 and isinstance(value[1], np.dtype):
            shape, dtype, strides = value
            known = FROM_NUMPY.get(dtype)
            return TensorInput(shape, known.name if known is not None else str(dtype),
                               tuple(s // dtype.itemsize for s in strides))
        return [argument(item) for item in value]
    return value


def flops_column(known: list[Any], ids: np.ndarray, inputs: np.ndarray, build: TraceBuilder) -> np.ndarray:
    """FLOPs per event, computed once per distinct (op, inputs) pair."""
    pairs = np.stack([ids, inputs.astype(np.int64)])
    which, first = distinct(pairs)
    values = [flops_of(known[event][3], build.inputs[given]) if given >= 0 and known[event][3] is not None else -1
              for event, given in pairs[:, first].T.tolist()]
    return np.array(values, np.int64)[which]
