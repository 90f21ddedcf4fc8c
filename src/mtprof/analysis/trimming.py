"""Cuts a stretch of time out of a recording."""

from __future__ import annotations

from dataclasses import replace

from ..own_metadata import STEP_STARTS
from ..tables.select import between
from ..trace import Trace


def trimmed(trace: Trace, low_ns: int, high_ns: int) -> Trace:
    """What began between two times of the host clock; the new recording begins there, and ends with the last of it.

    The end time itself is excluded, so neighbouring stretches share nothing.
    """
    part = between(trace, low_ns, max(low_ns, high_ns - 1))
    own = trace.metadata.get("mindtorch_v2", {})
    metadata = dict(trace.metadata)
    if own.get(STEP_STARTS):
        # Calls of step() are counted from the start of the recording, which has moved.
        moved = [start + trace.start_ns - low_ns for start in own[STEP_STARTS]]
        metadata["mindtorch_v2"] = {**own, STEP_STARTS: [time for time in moved if 0 < time < high_ns - low_ns]}
    end_ns = max(high_ns, int(part.events["end_ns"].max(initial=high_ns)))
    return replace(part, start_ns=low_ns, end_ns=end_ns, metadata=metadata)
