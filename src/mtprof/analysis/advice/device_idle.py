"""A device that is idle, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..device.idle import idle_times
from ..figures import percent_text
from .finding import Clean, Figure, Finding, Result, Unknown

if TYPE_CHECKING:
    from ..analysis import Analysis

SHARE = 0.2

CHANGES = {
    "data": "Meanwhile the host waits for data: speed up the loader first (`num_workers`, `prefetch_factor`).",
    "synchronisation": "The host waits for the device and then has to catch up: move `.item()`, `.cpu()`, printing and "
                       "synchronising calls out of the loop.",
    "host": "The host launches too slowly: launch fewer and larger ops (a larger batch, fused ops and optimizers), and "
            "move Python work out of the loop.",
    "kernel": "Work was queued, but the device started it late: look for copies, events and other streams that it "
              "waits for.",
}
WORDS = {"data": "the host waits for data", "synchronisation": "the host waits in a synchronising call",
         "host": "the host has not launched the next work yet", "kernel": "work is queued but not started"}


def look(analysis: Analysis) -> Result:
    """Stretches without any work on a device, by what the host did meanwhile."""
    steps = analysis.steps
    # Leave out the warm-up: the host prepares things there only once, so nothing could be saved later.
    found = idle_times(analysis, (int(steps.start_ns[analysis.breakdown.warmup]), int(steps.end_ns.max()))
                       if steps.known else None)
    if not found:
        return Unknown("no device work in the recording")
    worst = max(found, key=lambda idle: idle.idle_share)
    if worst.idle_share < SHARE:
        return Clean(f"{worst.device} is idle for {worst.idle_share:.1%} of the time")
    cause = max(worst.by_cause_ns, key=lambda word: worst.by_cause_ns[word])
    return Finding("device-idle", f"{worst.device} is idle for {percent_text(worst.idle_share)} of the "
                   f"{'steps' if steps.known else 'time'}, mostly because {WORDS[cause]}.",
                   [Figure("idle", worst.idle_ns, "ns"), Figure("share", worst.idle_share, "share"),
                    Figure("stretches", worst.gaps, "count"), Figure("longest", worst.longest_ns, "ns"),
                    *(Figure(WORDS[word], value, "ns") for word, value in worst.by_cause_ns.items() if value)],
                   CHANGES[cause], worst.place, worst.idle_ns, worst.idle_share, page="timeline", query=worst.device)
