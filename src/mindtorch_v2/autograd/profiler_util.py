"""`torch.autograd.profiler_util`: the classes and helpers behind profiler results, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from mtprof.devices import DeviceType
from mtprof.views.event_list import EventList
from mtprof.views.event_metadata import (
    _EVENT_METADATA_KEYS,
    EventMetadata,
    _build_metadata,
    _to_bool,
    _to_str,
)
from mtprof.views.formatting import (
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    _attr_formatter,
    _filter_name,
    _filter_stack_entry,
    _format_memory,
    _format_time,
    _format_time_share,
    _rewrite_name,
)
from mtprof.views.function_event import FormattedTimesMixin, FunctionEvent, Interval, Kernel
from mtprof.views.function_event_avg import FunctionEventAvg
from mtprof.views.mem_records import MemRecordsAcc
from mtprof.views.string_table import StringTable
from mtprof.views.table import build_table as _build_table

__all__ = [
    "MEMORY_EVENT_NAME",
    "OUT_OF_MEMORY_EVENT_NAME",
    "_EVENT_METADATA_KEYS",
    "DeviceType",
    "EventList",
    "EventMetadata",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
    "_attr_formatter",
    "_build_metadata",
    "_build_table",
    "_canonicalize_profiler_events",
    "_filter_name",
    "_filter_stack_entry",
    "_format_memory",
    "_format_time",
    "_format_time_share",
    "_rewrite_name",
    "_to_bool",
    "_to_str",
]


def _canonicalize_profiler_events(events: list[dict[str, Any]]) -> str:
    """Chrome events with their graph node and the source line it came from, one a line, by time.

    A source line is the last line of `args["stack_trace"]` that is not made of the markers which Python 3.11 and
    later print below it.
    """
    described = []
    for event in sorted(events, key=lambda event: event.get("ts", 0)):
        lines = [line.strip() for line in event["args"].get("stack_trace", "").split("\n")]
        source = [line for line in lines if line.strip("^~ ")]
        described.append(
            f"event={event.get('name', '')[:30]} node={event['args'].get('node_name', '')} "
            f"stack_trace={source[-1] if source else ''}")
    return "\n".join(described)
