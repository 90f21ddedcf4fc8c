"""The trace of a recording with several processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtprof.tables.concat import concatenated
from mtprof.tables.select import without_threads
from mtprof.trace import Trace

from ..sources import pools  # noqa: F401  (makes workers of pools take part)
from ..sources.reporting import THREAD_NAME
from .recorder import Recorder

# Metadata that only concern the process in which they were recorded.
OF_ONE_PROCESS = ("uses", "moves", "roles", "holders", "held", "optimizer_steps", "modules", "module_calls")
LOST = "lost_processes"  # in the trace's metadata: a line per process whose events did not arrive


def with_children(trace: Trace, recorder: Recorder, *, with_flops: bool = False) -> Trace:
    """`trace` with the events of the recorder's children.

    A memory timeline covers one process. If one can be requested, the memory of the others is left out.
    """
    arrived = recorder.taken("processes")
    lost = [line for part in arrived for line in part.lost]
    if lost:
        trace = replace(trace, metadata={**trace.metadata, LOST: lost})
    steps_ns = np.array(recorder.steps_ns, np.int64)
    # They come in order of completion; sorted by name, the order is the same each time.
    children = sorted((child for part in arrived for child in part.traces), key=_name)
    others = [_adapted(_without_ours(child), steps_ns, with_flops) for child in children]
    return concatenated(trace, others, without=(*OF_ONE_PROCESS, "memory") if recorder.options.timeline
                        else OF_ONE_PROCESS)


def _name(child: Trace) -> tuple[int, str, int]:
    if not child.threads:
        return 0, "", 0
    name = child.threads[0].process_name
    return len(name), name, child.threads[0].pid  # worker 2 before worker 10


def _adapted(child: Trace, steps_ns: np.ndarray, with_flops: bool) -> Trace:
    """The child counted no steps, and computed FLOPs whenever it could."""
    columns = {"step": np.searchsorted(steps_ns, child.events["start_ns"], "right").astype(np.int32)}
    if not with_flops:
        columns["flops"] = np.full_like(child.events["flops"], -1)
    return child.with_columns("events", **columns)


def _without_ours(child: Trace) -> Trace:
    """Without the thread that talks to us: it is not part of the user's program and runs no ops."""
    ours = np.array([info.name == THREAD_NAME for info in child.threads], bool)
    return without_threads(child, ours) if ours.any() else child
