"""Stacks with their times, one per line, in the format of flame graph tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from ..files import write_atomically

METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

# Blanks and semicolons separate fields in the file, so frames must not contain them.
_SEPARATORS = str.maketrans(" ;\t\n", "____")


# Frames that run the program, outside of it: Python's own runner and ours.
_RUNNERS = ("<frozen runpy>(", "runpy.py(", "mtprof/__main__.py(", "mtprof/cli/", "mindtorch_v2/__main__.py(")


def write(events: Iterable[Any], path: str | os.PathLike[str], metric: str) -> None:
    """Write `outermost;...;innermost;event microseconds` for each stack and event that has a time.

    Unlike PyTorch's, lines end with what ran, equal lines are added up, so that many events of less than a microsecond
    are not lost, and the frames that started the program are left out. Microseconds are whole.
    """
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {METRICS}")
    attribute = metric if metric == "self_cpu_time_total" else "self_device_time_total"
    write_atomically(path, _lines(events, attribute))


def _lines(events: Iterable[Any], attribute: str) -> Iterator[bytes]:
    sums: dict[tuple[str, ...], float] = {}
    for event in events:
        time = getattr(event, attribute)
        if event.stack and time > 0:
            key = (event.key, *event.stack)
            sums[key] = sums.get(key, 0.0) + time
    for key, time in sums.items():
        if time >= 1:
            frames = [frame.translate(_SEPARATORS) for frame in reversed(key) if not frame.startswith(_RUNNERS)]
            yield f"{';'.join(frames)} {int(time)}\n".encode("utf-8", "replace")
