"""A list of events, or of averages, as a Chrome trace.

Events keep their times, in the plain list that PyTorch's `EventList.export_chrome_trace` writes. Averages have no times
of their own; they follow each other in the order of the list, each as long as its total time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..files import write_atomically
from ..json_text import text

_AVERAGE_TIMES = ("self_cpu_time_total", "cpu_time_total", "cpu_time", "self_device_time_total", "device_time_total",
                  "device_time")


def write(events: Sequence[Any], path: str | os.PathLike[str], *, averages: bool | None = None,
          use_device: str | None = None) -> None:
    """Write `events` to `path`; a name that ends in `.gz` is compressed.

    `averages` says which kind the list holds; without it the first item decides, and an empty list counts as events.
    `use_device` is the device in the category of arrows to kernels, "cuda" by default as in PyTorch.
    """
    if averages is None:
        averages = len(events) > 0 and not hasattr(events[0], "time_range")
    lines = _averages(events) if averages else _events(events, use_device or "cuda")
    opening, closing = (b'{"traceEvents": [', b"]}\n") if averages else (b"[", b"]\n")
    write_atomically(path, _listed(opening, lines, closing))


def _listed(opening: bytes, lines: Iterator[str], closing: bytes) -> Iterator[bytes]:
    yield opening
    separator = "\n"
    for line in lines:
        yield (separator + line).encode()
        separator = ",\n"
    yield closing


def _events(events: Sequence[Any], device: str) -> Iterator[str]:
    arrow = 0
    for event in events:
        if event.trace_name is None:
            continue
        name, start = text(event.trace_name), text(event.time_range.start)
        thread = text(event.thread)
        lane = text(f" node_id:{event.node_id}, thread_id:{event.thread} ") if event.is_remote else thread
        yield (f'{{"name": {name}, "ph": "X", "ts": {start}, "dur": {text(event.time_range.elapsed_us())}, '
               f'"tid": {lane}, "pid": "CPU functions", "args": {{}}}}')
        for _ in event.kernels:
            yield (f'{{"name": {name}, "ph": "s", "ts": {start}, "tid": {thread}, "pid": "CPU functions", '
                   f'"id": {arrow}, "cat": "cpu_to_{device}", "args": {{}}}}')
            arrow += 1


def _averages(rows: Sequence[Any]) -> Iterator[str]:
    start = 0.0
    for row in rows:
        device = getattr(row.device_type, "name", str(row.device_type))
        on_host = device == "CPU"
        duration = float(row.cpu_time_total if on_host else row.device_time_total)
        arguments: dict[str, Any] = {"count": row.count, "device_type": device}
        arguments |= {name: getattr(row, name) for name in _AVERAGE_TIMES}
        if row.flops is not None and row.flops > 0:  # PyTorch's rows have 0 if there is no formula
            arguments["flops"] = row.flops
        if row.input_shapes:
            arguments["input_shapes"] = str(row.input_shapes)
        yield text({"name": row.key, "ph": "X", "ts": round(start, 3), "dur": duration, "pid": 0, "tid": 0,
                    "cat": "cpu_op" if on_host else "kernel", "args": arguments})
        start += duration
