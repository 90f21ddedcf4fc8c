"""Stacks with their times, one a line, as flame graph tools read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from .files import write_atomically

METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

# Blanks and semicolons separate fields in the file, so they may not occur in a frame.
_SEPARATORS = str.maketrans(" ;\t\n", "____")


def write(events: Iterable[Any], path: str | os.PathLike[str], metric: str) -> None:
    """Write `outermost;...;innermost microseconds` for each event that has a stack and a time.

    Microseconds are whole. What an event has beyond them, or less than one, is added to the next one of the same stack,
    so that many short events, each less than a microsecond, are not lost as they are in PyTorch.
    """
    if metric not in METRICS:
        raise ValueError(f"metric should be one of: {METRICS}")
    attribute = metric if metric == "self_cpu_time_total" else "self_device_time_total"
    write_atomically(path, _lines(events, attribute))


def _lines(events: Iterable[Any], attribute: str) -> Iterator[bytes]:
    rest: dict[tuple[str, ...], float] = {}
    for event in events:
        time = getattr(event, attribute)
        if not event.stack or time <= 0:
            continue
        key = tuple(event.stack)
        time += rest.get(key, 0.0)
        rest[key] = time % 1
        if time >= 1:
            frames = ";".join(frame.translate(_SEPARATORS) for frame in reversed(key))
            yield f"{frames} {int(time)}\n".encode("utf-8", "replace")
