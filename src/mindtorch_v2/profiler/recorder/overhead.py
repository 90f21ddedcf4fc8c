"""An estimate of what recording costs the recorded program.

A profiler cannot time itself while it records without costing more. So it measures the cost of one event of each sort
separately, once per process and set of options, in about two milliseconds. It times in short loops what an op, a scope,
an allocation and a call run while they are recorded. The best of a few rounds counts, because a disturbance only makes
a loop longer. The estimate is these costs times the numbers of events.

This happens when a result is first requested, never while a program is recorded, and changes nothing in the program.
The estimate leaves out events of other processes, which ran beside this one; pauses of the garbage collector, of which
a few nanoseconds are the profiler's; and the space that recording takes in the processor's caches, which a short loop
does not show. So it is a lower bound.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from types import CodeType
from typing import Any

import numpy as np

from mtprof.schema import Kind
from mtprof.trace import Trace

from ..._dispatch.dispatcher import describer
from ..._dispatch.facts import facts_of
from ..._dispatch.observer import HOOK, describe, event_id, note_uses
from ..._dispatch.recipes import recipe
from ..._dispatch.registry import OPS
from ..._dispatch.state import THREAD
from ..._tensor import wrap_known
from ..options import Options
from ..record_function import record_function
from ..sources.buffers import Buffers, count_of
from ..sources.memory import new_log
from ..sources.monitoring import Monitor
from ..sources.profile_functions import ProfileFunctions
from ..sources.python_calls import CallLog, free_tool_id
from ..sources.scopes import OPEN
from ..sources.tensors import new_use_log
from .assemble import pieces_of
from .recorder import Recorder

clock = HOOK["clock"]
CALLS = 60  # per round
ROUNDS = 3

_OPS = (Kind.OP, Kind.BACKWARD, Kind.BACKWARD_FUNCTION)
_SCOPES = (Kind.SCOPE, Kind.STEP)
# Compiled under a name of its own, because calls of this package's functions are not recorded.
_USER_CODE: CodeType = compile(f"def nothing():\n    pass\ndef calls():\n    for _ in range({CALLS}): nothing()\n",
                               "<calibration of the profiler>", "exec")


@dataclass(frozen=True)
class Costs:
    """Nanoseconds that recording adds."""

    op: float
    scope: float  # a module's call counts as a scope
    memory_change: float
    python_call: float


@dataclass(frozen=True)
class Overhead:
    """The cost of a recording."""

    events: int
    cost_us: float


_KNOWN: dict[Options, Costs] = {}


def overhead_of(recorder: Recorder, trace: Trace) -> Overhead | None:
    """The estimate for a stopped recorder and its trace, without events of other processes.

    None if the costs are not known yet and cannot be measured now, because another recording is running and would
    include the measurement.
    """
    costs = costs_of(recorder.options)
    if costs is None:
        return None
    counts = np.bincount(trace.events["kind"], minlength=len(Kind))
    ops, scopes = int(counts[list(_OPS)].sum()), int(counts[list(_SCOPES)].sum())
    # Calls of modules cost like scopes, even if they are not events of the trace.
    modules = max(0, sum(count_of(piece.events) for piece in pieces_of(recorder)) - ops - scopes)
    changes, calls = len(trace.optional("memory")["time_ns"]), int(counts[Kind.PYTHON])
    cost_ns = (ops * costs.op + (scopes + modules) * costs.scope + changes * costs.memory_change
               + calls * costs.python_call)
    return Overhead(ops + scopes + modules + changes + calls, cost_ns / 1000)


def costs_of(options: Options) -> Costs | None:
    """The costs with some options, measured now unless they are known."""
    key = replace(options, max_events=None, collections=False, flops=False)
    if key not in _KNOWN:
        with Recorder.lock:  # so that no recording begins meanwhile
            if Recorder.running is not None or HOOK["TAP"] is not None:
                return None
            _KNOWN[key] = _measure(key)
    return _KNOWN[key]


def _measure(options: Options) -> Costs:
    """Run what ops, scopes, allocations and calls run while they are recorded, on this thread and into separate logs.

    It raises no flag that other threads or the program's ops look at, runs no op of the program, and restores this
    thread's state.
    """
    state = THREAD.state
    before, was_enabled = state.events, gc.isenabled()
    try:
        gc.disable()
        Buffers().give(state, None)
        return Costs(op=_op_ns(options), scope=_scope_ns(), memory_change=_change_ns() if options.memory else 0.0,
                     python_call=_call_ns() if options.stacks else 0.0)
    finally:
        describe(False)
        note_uses(None)
        state.record_into(before)
        if was_enabled:
            gc.enable()


def _op_ns(options: Options) -> float:
    """The time that recording adds to an op whose kernel does nothing: its function, watched and not watched."""
    op, array = OPS["mul.Tensor"], np.ones((2, 2), np.float32)
    given = wrap_known(array), wrap_known(array)
    event = event_id("aten::mul", "op", "Tensor", op)
    uses = new_use_log() if options.tensors else None
    facts = {"DESCRIBE": options.shapes, "USES": None if uses is None else uses.used, "ALLOCATED": None, "TAP": None,
             "AUTOCAST": False}
    functions = []
    code = recipe(facts_of(op, False)).function
    for watched in (False, True):
        space: dict[str, Any] = {}
        exec(code, {**HOOK, **facts, "OBSERVING": watched}, space)
        function = space["make"](op, lambda *arrays: array, None, None, event, event, describer(op), None)
        functions.append(partial(function, *given))
    describe(options.shapes)
    note_uses(uses)
    return _added_ns(*functions)


def _scope_ns() -> float:
    scope = record_function("calibration")

    def recorded() -> None:
        OPEN[scope] = get_ident()
        scope.start = clock()
        scope._end()

    return _added_ns(int, recorded)


def _change_ns() -> float:
    log, array = new_log(), partial(np.empty, 2, np.float32)

    def recorded() -> None:
        log.allocated(array())  # and released

    return _added_ns(array, recorded) / 2


def _call_ns() -> float:
    """Leave all threads except this one alone; do nothing if this thread already has a profile function."""
    names: dict[str, Any] = {}
    exec(_USER_CODE, names)
    calls = names["calls"]
    if sys.getprofile() is not None:
        return 0.0
    log = CallLog()
    alone = _best_ns(calls)
    tool = free_tool_id()
    if tool is None:
        function = ProfileFunctions(log).function_of(log.new_lane(), None)
        try:
            (sys.setprofile if log.native is None else _install)(function)
            noted = _best_ns(calls)
        finally:
            sys.setprofile(None)
    else:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events = monitoring.events
        monitoring.use_tool_id(tool, "calibration")
        try:
            for name, callback in Monitor(log, tool).all_callbacks().items():
                monitoring.register_callback(tool, getattr(events, name), callback)
            monitoring.set_local_events(tool, names["nothing"].__code__, events.PY_START | events.PY_RETURN)
            noted = _best_ns(calls)
        finally:
            monitoring.set_local_events(tool, names["nothing"].__code__, 0)
            for name in ("PY_START", "PY_RETURN"):
                monitoring.register_callback(tool, getattr(events, name), None)
            monitoring.free_tool_id(tool)
    return max(0.0, noted - alone) / CALLS


def _install(probe: Any) -> None:
    probe.install()


def _added_ns(alone: Callable[[], object], recorded: Callable[[], object]) -> float:
    """How much longer one function takes than another; measured in turns, so that both have the same conditions."""
    def many(function: Callable[[], object]) -> None:
        for _ in range(CALLS):
            function()

    first, second = [], []
    for _ in range(2):
        first.append(_best_ns(partial(many, alone)))
        second.append(_best_ns(partial(many, recorded)))
    return max(0.0, min(second) - min(first)) / CALLS


def _best_ns(function: Callable[[], object]) -> int:
    """The time of a call in the best of some rounds."""
    best = []
    for _ in range(ROUNDS):
        begin = perf_counter_ns()
        function()
        best.append(perf_counter_ns() - begin)
    return min(best)
