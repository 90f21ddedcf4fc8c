"""What recording costs the recorded program: an estimate.

A profiler cannot time itself while it records without costing more. So the cost of one event of each sort is measured
apart, once per process and set of options: steps of a tiny model, empty scopes and empty Python functions are timed
with and without a recorder, and the difference is divided by the number of events. The best of a few rounds counts, as
what disturbs a loop only ever makes it longer. The estimate is these costs times the numbers of events.

That is done when a result is first asked for, never while a program is recorded. What is not in it: events of other
processes, which ran beside this one; pauses of the garbage collector, of which a few nanoseconds are the profiler's;
and caches that recording takes from the program, which a small loop does not show. So it is a lower bound.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter_ns
from types import CodeType
from typing import Any

import numpy as np

from ..._autograd.grad_mode import enable_grad, inference_mode
from ..._dispatch.namespace import aten
from ..._dispatch.observer import HOOK
from ..record_function import record_function
from ..trace import Kind, Trace
from .buffers import count_of
from .recorder import Recorder, RecorderOptions

CALLS = 100  # of a scope or function per round
STEPS = 8  # of the tiny model per round
ROUNDS = 4

_OPS = (Kind.OP, Kind.BACKWARD, Kind.BACKWARD_FUNCTION)
_SCOPES = (Kind.SCOPE, Kind.STEP)
# Compiled under a name of its own, since calls of this package's functions are not recorded.
_USER_CODE: CodeType = compile("def nothing():\n    pass\n", "<calibration of the profiler>", "exec")


@dataclass(frozen=True)
class Costs:
    """Nanoseconds that recording adds."""

    op: float
    scope: float  # a module's call counts as one
    memory_change: float
    python_call: float


@dataclass(frozen=True)
class Overhead:
    """What a recording has cost."""

    events: int
    cost_us: float


_KNOWN: dict[RecorderOptions, Costs] = {}


def overhead_of(recorder: Recorder, trace: Trace) -> Overhead | None:
    """The estimate for a stopped recorder and its trace, without those of other processes.

    None if the costs are not known yet and cannot be measured now, because another recording is under way that the
    measuring would become part of.
    """
    costs = costs_of(recorder.options)
    if costs is None:
        return None
    counts = np.bincount(trace.events["kind"], minlength=len(Kind))
    ops, scopes = int(counts[list(_OPS)].sum()), int(counts[list(_SCOPES)].sum())
    # Calls of modules are noted like scopes, also where they are no events of the trace.
    modules = max(0, sum(count_of(piece.events) for piece in recorder.pieces) - ops - scopes)
    changes, calls = len(trace.memory["time_ns"]), int(counts[Kind.PYTHON])
    cost_ns = (ops * costs.op + (scopes + modules) * costs.scope + changes * costs.memory_change
               + calls * costs.python_call)
    return Overhead(ops + scopes + modules + changes + calls, cost_ns / 1000)


def costs_of(options: RecorderOptions) -> Costs | None:
    """The costs with some options, measured now if they never were."""
    key = replace(options, max_events=None, collections=False)
    with Recorder.lock:
        if key not in _KNOWN:
            if Recorder.session is not None or HOOK["TAP"] is not None:
                return None
            with inference_mode(False), enable_grad():  # whatever the program has set where it asks
                _KNOWN[key] = _measure(key)
        return _KNOWN[key]


def _measure(options: RecorderOptions) -> Costs:
    points = aten.ones((8, 8))
    weight = aten.ones((8, 8)).requires_grad_()
    names: dict[str, Any] = {}
    exec(_USER_CODE, names)
    nothing = names["nothing"]

    def step() -> None:
        # Ops with and without inner ops, with their nodes, and the engine's events: the mixture that programs have.
        aten.sum(aten.relu(aten.linear(points, weight))).backward()

    def scope() -> None:
        with record_function("calibration of the profiler"):
            pass

    def call() -> None:
        for _ in range(CALLS):
            nothing()

    without_memory = replace(options, memory=False)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        alone = _best_ns(step, STEPS)
        recorded, noted = _recorded_ns(step, STEPS, without_memory)
        events = sum(count_of(piece.events) for piece in noted.pieces) / (1 + ROUNDS * STEPS)
        change = 0.0
        if options.memory:
            with_memory, noted = _recorded_ns(step, STEPS, options)
            changes = sum(len(stretch[0]) for stretch in noted.memory) / (1 + ROUNDS * STEPS)
            change = max(0.0, with_memory - recorded) / changes
        # Once more: if something else ran in the first part, all of the rest would seem to cost nothing.
        alone = min(alone, _best_ns(step, STEPS))
        call_cost = 0.0
        if options.stacks:
            call_cost = max(0.0, _recorded_ns(call, 1, options)[0] - _best_ns(call, 1)) / CALLS
        return Costs(
            op=max(0.0, recorded - alone) / events,
            scope=max(0.0, _recorded_ns(scope, CALLS, without_memory)[0] - _best_ns(scope, CALLS)),
            memory_change=change,
            python_call=call_cost,
        )
    finally:
        if was_enabled:
            gc.enable()


def _recorded_ns(function: Callable[[], object], times: int, options: RecorderOptions) -> tuple[float, Recorder]:
    """What a call takes while it is recorded, and the recorder."""
    recorder = Recorder(options)
    recorder.with_children = False
    recorder.start()
    try:
        return _best_ns(function, times), recorder
    finally:
        recorder.stop()


def _best_ns(function: Callable[[], object], times: int) -> float:
    """What a call takes in the best of some rounds."""
    best = float("inf")
    function()
    for _ in range(ROUNDS):
        begin = perf_counter_ns()
        for _ in range(times):
            function()
        best = min(best, (perf_counter_ns() - begin) / times)
    return best
