"""Results within a time: what could be made of a recording before it was over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from mtprof.views.event_list import EventList

log = logging.getLogger(__name__)


def events_within(timeout_s: float, make: Callable[[], EventList]) -> EventList:
    """The events that `make` gives, as many as can be taken before so many seconds are over; a warning if not all.

    Columns are made as a whole, whatever it takes; the time counts from before that.
    """
    end = time.perf_counter() + timeout_s
    everything = make()
    taken = EventList(use_device=everything._use_device, profile_memory=everything._profile_memory,
                      with_flops=everything._with_flops)
    taken._tree_built, taken._dropped, taken._overhead = True, everything._dropped, everything._overhead
    for event in everything:
        if time.perf_counter() >= end:
            log.warning("post_processing_timeout_s=%g is over after %d of %d events: the results are partial",
                        timeout_s, len(taken), len(everything))
            break
        taken.append(event)
    return taken
