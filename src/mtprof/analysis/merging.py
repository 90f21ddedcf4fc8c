"""The traces of several processes on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..tables.concat import concatenated
from ..tables.select import shifted
from ..trace import Trace
from .steps import find_steps


def merged(traces: Sequence[Trace], *, by_steps: bool = False) -> tuple[Trace, list[int]]:
    """One trace from several, and what was added to each clock to match the first one's.

    Clocks are aligned by the nanoseconds since 1970 that each trace states or, with `by_steps`, so that the first
    common step begins at the same moment. Traces that state no time of day need `by_steps`.
    """
    first = traces[0]
    if by_steps:
        offsets = _by_steps(traces)
    else:
        missing = [number for number, trace in enumerate(traces) if not trace.epoch_ns]
        if missing:
            raise ValueError(f"trace {missing[0] + 1} states no time of day, so its clock cannot be aligned; "
                             "use --align steps")
        offsets = [trace.epoch_ns - first.epoch_ns for trace in traces]
    moved = [_apart(shifted(trace, offset), number, traces) for number, (trace, offset) in enumerate(zip(traces,
                                                                                                         offsets))]
    joined = concatenated(moved[0], moved[1:])
    return replace(joined, start_ns=min(trace.start_ns for trace in moved),
                   end_ns=max(trace.end_ns for trace in moved)), \
        offsets


def _by_steps(traces: Sequence[Trace]) -> list[int]:
    starts = []
    for number, trace in enumerate(traces):
        steps = find_steps(trace)
        if not steps.known:
            raise ValueError(f"trace {number + 1} has no steps to align by")
        starts.append(dict(zip(steps.number.tolist(), steps.start_ns.tolist())))
    common = set.intersection(*(set(found) for found in starts))
    if not common:
        raise ValueError("the traces have no step in common")
    step = min(common)
    return [starts[0][step] - found[step] for found in starts]


def _apart(trace: Trace, number: int, traces: Sequence[Trace]) -> Trace:
    """The trace with process numbers that no other one has: on several machines two processes may have the same."""
    info = trace.metadata.get("distributedInfo")
    rank = info.get("rank", number) if isinstance(info, dict) else number
    earlier = {thread.pid for other in traces[:number] for thread in other.threads}
    taken = {thread.pid for other in traces for thread in other.threads}
    new: dict[int, int] = {}
    for thread in trace.threads:
        if thread.pid in earlier and thread.pid not in new:
            new[thread.pid] = next(pid for pid in range(thread.pid + 1_000_000 * number, 2**62) if pid not in taken)
    threads = [thread._replace(pid=new.get(thread.pid, thread.pid), process_name=f"{thread.process_name} (rank {rank})")
               for thread in trace.threads]
    return replace(trace, threads=threads)
