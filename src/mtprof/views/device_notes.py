"""The notes below a table about the devices of a recording."""

from __future__ import annotations

from ..own_metadata import DEVICE_TIMES
from ..trace import Trace


def device_notes(trace: Trace) -> tuple[str, ...]:
    """A line for each device whose times need an explanation."""
    lines = []
    for facts in trace.metadata.get(DEVICE_TIMES, ()):
        label = facts.get("device", "device")
        if facts.get("simulator"):
            lines.append(f"{label} times: the {label} was a simulator, not hardware")
        if facts.get("times_from") == "events":
            lines.append(f"{label} times: from pairs of events, which may include waiting")
        if facts.get("problem"):
            lines.append(f"{label} times: incomplete: {facts['problem']}")
    return tuple(lines)
