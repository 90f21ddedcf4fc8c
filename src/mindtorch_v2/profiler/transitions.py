"""The work between two steps: for each pair of a schedule's actions, what a profiler does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from .schedule import ProfilerAction

NONE, WARMUP = ProfilerAction.NONE, ProfilerAction.WARMUP
RECORD, SAVE, STOPPED = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE, ProfilerAction.DEVICE_STOPPED
Transitions = dict[tuple[ProfilerAction, ProfilerAction | None], list[Callable[[], Any]]]

# What must begin for a step with this action; a recording step begins with whatever preparation it has had.
_BEGIN = {NONE: (), WARMUP: ("prepare_trace",), RECORD: ("prepare_trace", "start_trace"),
          SAVE: ("prepare_trace", "start_trace"), STOPPED: (), None: ()}
_SAVE = ("stop_trace", "_trace_ready")


def transitions(profiler: Any) -> Transitions:
    """The methods of a profiler for each pair of actions; None stands for the end.

    Only a device that stops by itself leads to DEVICE_STOPPED, which no schedule may request.
    """
    def steps(*names: str) -> list[Callable[[], Any]]:
        return [getattr(profiler, name) for name in names]

    def wrong(before: ProfilerAction, after: ProfilerAction) -> list[Callable[[], Any]]:
        return [partial(warnings.warn, f"Incorrect schedule: {before.name} followed by {after.name}", UserWarning,
                        stacklevel=4)]

    table: Transitions = {}
    for after, begin in _BEGIN.items():
        table[NONE, after] = steps(*begin)
        table[STOPPED, after] = steps(*begin)
        table[SAVE, after] = steps(*_SAVE, *begin)
    for after in (RECORD, SAVE):
        table[WARMUP, after] = steps("start_trace")
        table[RECORD, after] = []
    table[WARMUP, WARMUP] = []
    table[WARMUP, NONE] = wrong(WARMUP, NONE) + steps("start_trace", "stop_trace")
    table[WARMUP, None] = steps("start_trace", "stop_trace")
    table[RECORD, NONE] = wrong(RECORD, NONE) + steps("stop_trace")
    # What is kept after a schedule that breaks off stays readable until the next recording begins.
    table[RECORD, WARMUP] = wrong(RECORD, WARMUP) + steps("stop_trace")
    table[RECORD, None] = steps(*_SAVE)
    table[WARMUP, STOPPED] = steps("start_trace", *_SAVE)
    table[RECORD, STOPPED] = steps(*_SAVE)
    for before in (NONE, SAVE):
        table[before, STOPPED] = [partial(_unreachable, before)]
    del table[NONE, None]
    return table


def _unreachable(before: ProfilerAction) -> NoReturn:
    raise RuntimeError(f"{before.name} -> DEVICE_STOPPED should be unreachable: only a device that works stops")
