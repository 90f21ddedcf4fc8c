"""Results within a time limit: as many events as could be made before it ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from mtprof.views.event_list import EventList

log = logging.getLogger(__name__)


def events_within(timeout_s: float, make: Callable[[], EventList]) -> EventList:
    """The events that `make` gives, as many as can be made within so many seconds; with a warning if not all.

    Columns are made as a whole, however long that takes; the time counts from before that.
    """
    end = time.perf_counter() + timeout_s
    everything = make()
    taken = EventList(use_device=everything._use_device, profile_memory=everything._profile_memory,
                      with_flops=everything._with_flops)
    taken._tree_built, taken._dropped, taken._overhead = True, everything._dropped, everything._overhead
    for event in everything:
        if time.perf_counter() >= end:
            log.warning("post_processing_timeout_s=%g ended after %d of %d events: the results are partial",
                        timeout_s, len(taken), len(everything))
            break
        taken.append(event)
    return taken
