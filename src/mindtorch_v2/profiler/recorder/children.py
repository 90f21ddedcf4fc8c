"""The trace of a recording in which other processes took part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..trace import Kind, Trace
from ..trace.merge import merged
from . import pools  # noqa: F401  (it sees to it that workers of pools are children that take part)
from .recorder import Recorder
from .reporting import THREAD_NAME

LOST = "lost_processes"  # in the trace's metadata: a line per process whose events did not come home


def with_children(trace: Trace, recorder: Recorder, *, with_flops: bool = False) -> Trace:
    """`trace` with what the recorder's children sent.

    A memory timeline is that of one process; where one can be asked for, the memory of others is left out.
    """
    if recorder.lost_children:
        trace = replace(trace, metadata={**trace.metadata, LOST: list(recorder.lost_children)})
    steps_ns = np.array(recorder.steps_ns, np.int64)
    # They come as they are done; by name they are in the same order each time.
    children = sorted(recorder.children, key=_name)
    others = [_adapted(_without_ours(child), steps_ns, with_flops) for child in children]
    return merged(trace, others, with_memory=not recorder.options.timeline)


def _name(child: Trace) -> tuple[int, str, int]:
    if not child.threads:
        return 0, "", 0
    name = child.threads[0].process_name
    return len(name), name, child.threads[0].pid  # worker 2 before worker 10


def _adapted(child: Trace, steps_ns: np.ndarray, with_flops: bool) -> Trace:
    """The child counted no steps, and counted FLOPs whenever it could."""
    events = {**child.events, "step": np.searchsorted(steps_ns, child.events["start_ns"], "right").astype(np.int32)}
    if not with_flops:
        events["flops"] = np.full_like(events["flops"], -1)
    return replace(child, events=events)


def _without_ours(child: Trace) -> Trace:
    """Without Python calls on the thread that talks to us: it is no part of the user's program."""
    ours = np.array([info.name == THREAD_NAME for info in child.threads], bool)
    if not ours.any():
        return child
    # Such a thread runs no ops, so all its rows go, and no row or memory change of another thread points to them.
    python = (child.events["kind"] == Kind.PYTHON) | (child.events["kind"] == Kind.MODULE)
    kept = ~(ours[child.events["thread"]] & python)
    place = np.append(np.cumsum(kept) - 1, -1).astype(np.int32)
    events = {key: value[kept] for key, value in child.events.items()}
    row = place[child.memory["row"]]
    events["parent"] = place[events["parent"]]
    used = np.zeros(len(child.threads), bool)
    for table in (events, child.memory, child.failures):
        used[table["thread"]] = True
    renumbered = (np.cumsum(used) - 1).astype(np.int32)
    events["thread"] = renumbered[events["thread"]]
    memory = {**child.memory, "row": row, "thread": renumbered[child.memory["thread"]]}
    failures = {**child.failures, "thread": renumbered[child.failures["thread"]]}
    threads = [info for info, keep in zip(child.threads, used.tolist(), strict=True) if keep]
    return replace(child, events=events, memory=memory, failures=failures, threads=threads)
