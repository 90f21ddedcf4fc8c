"""Looks for contradictions in a Chrome trace: a kernel before its launch, a wait for nothing, missing metadata.

>>> passed, violations = validate_trace("trace.json")  # doctest: +SKIP
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]


@dataclass
class Violation:
    """A rule, and its violations."""

    rule_name: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule_name}: {self.message}"


Rule = Callable[[list[Event]], list[Violation]]
_RULES: list[Rule] = []


def _rule(find: Callable[[list[Event]], Iterator[str]]) -> Rule:
    """Make a rule from a function that yields a message for each fault among the complete events."""
    def check(events: list[Event]) -> list[Violation]:
        complete = [event for event in events if event.get("ph") == "X"]
        return [Violation(find.__name__, message) for message in find(complete)]

    check.__name__, check.__doc__ = find.__name__, find.__doc__
    _RULES.append(check)
    return check


def _facts(event: Event) -> dict[str, Any]:
    return event.get("args") or {}


def _start(event: Event) -> float:
    return float(event.get("ts", 0))


def _earliest(events: list[Event], key: str) -> dict[int, Event]:
    """The first event for each value of an argument."""
    found: dict[int, Event] = {}
    for event in events:
        number = _facts(event).get(key)
        if number is not None and (int(number) not in found or _start(event) < _start(found[int(number)])):
            found[int(number)] = event
    return found


@_rule
def _check_gpu_kernel_causality(events: list[Event]) -> Iterator[str]:
    """A kernel does not start before the call that launched it; the two share an `External id`."""
    launches = _earliest([e for e in events if e.get("cat") == "cuda_runtime" and e.get("name") == "cudaLaunchKernel"],
                         "External id")
    for number, kernel in _earliest([e for e in events if e.get("cat") == "kernel"], "External id").items():
        launch = launches.get(number)
        if launch is not None and _start(kernel) < _start(launch):
            yield (f"the kernel {kernel.get('name')!r} of External id {number} starts "
                   f"{_start(launch) - _start(kernel):.1f} us before its launch at {_start(launch):.1f}")


def _waited(event: Event) -> Any:
    return _facts(event).get("wait_on_cuda_event_record_corr_id")


@_rule
def _check_stream_wait_corr_id_populated(events: list[Event]) -> Iterator[str]:
    """A wait for a CUDA event names the event."""
    for event in events:
        kind = _facts(event).get("cuda_sync_kind")
        if kind in ("Stream Wait Event", "Event Sync") and (_waited(event) is None or int(_waited(event)) < 0):
            yield (f"{kind!r} at {_start(event):.1f} us on device {_facts(event).get('device')}, stream "
                   f"{_facts(event).get('stream')} waits for {_waited(event)!r}")


@_rule
def _check_stream_sync_overlap(events: list[Event]) -> Iterator[str]:
    """After the host has waited for a stream, nothing runs on it."""
    def stream(event: Event) -> tuple[Any, Any]:
        return _facts(event).get("device"), _facts(event).get("stream")

    kernels: dict[tuple[Any, Any], list[Event]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "kernel":
            kernels[stream(event)].append(event)
    for sync in events:
        if sync.get("cat") != "cuda_sync" or _facts(sync).get("cuda_sync_kind") != "Stream Sync":
            continue
        for kernel in kernels[stream(sync)]:
            end = _start(kernel) + float(kernel.get("dur", 0))
            if _start(kernel) < _start(sync) < end:
                yield (f"the kernel {kernel.get('name')!r} runs until {end:.1f} us on (device, stream) {stream(sync)}, "
                       f"which was waited for at {_start(sync):.1f}")


@_rule
def _check_stream_wait_corr_id_in_past(events: list[Event]) -> Iterator[str]:
    """A stream waits for a CUDA event that was recorded before and is in the trace."""
    records = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")
               and str(e.get("name")).removesuffix("_ptsz") in ("cudaEventRecord", "cudaEventRecordWithFlags")]
    times: dict[int, float] = {}
    for key in ("External id", "correlation"):
        for number, event in _earliest(records, key).items():
            times[number] = min(_start(event), times.get(number, _start(event)))
    for event in events:
        if _facts(event).get("cuda_sync_kind") != "Stream Wait Event" or _waited(event) is None:
            continue
        number = int(_waited(event))
        if number >= 0 and number not in times:
            yield f"the wait at {_start(event):.1f} us is for the event record {number}, which is not in the trace"
        elif number >= 0 and times[number] > _start(event):
            yield f"the wait at {_start(event):.1f} us is for the event record {number} at {times[number]:.1f}"


_COLLECTIVE = ("Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size")


@_rule
def _check_nccl_metadata(events: list[Event]) -> Iterator[str]:
    """Collectives state their name, type, sizes and group size."""
    for event in events:
        missing = sorted(key for key in _COLLECTIVE if key not in _facts(event))
        if event.get("name") == "record_param_comms" and missing:
            yield f"'record_param_comms' at {_start(event):.1f} us has no {', '.join(missing)}"


@_rule
def _check_backward_seq_id_uniqueness(events: list[Event]) -> Iterator[str]:
    """A sequence number belongs to one backward function."""
    functions: dict[int, dict[str, None]] = defaultdict(dict)
    for event in events:
        name = str(event.get("name", ""))
        number = _facts(event).get("Sequence number") or _facts(event).get("seq_num")
        if "autograd::engine::evaluate_function:" in name and number is not None:
            functions[int(number)][name.rpartition("evaluate_function:")[2].strip()] = None
    for number, names in functions.items():
        if len(names) > 1:
            yield f"{len(names)} backward functions have the sequence number {number}: {', '.join(names)}"


def _load_events(path: str) -> list[Event]:
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        document = json.load(file)
    events = document if isinstance(document, list) else document.get("traceEvents", [])
    return [event for event in events if isinstance(event, dict)]


def validate_trace(trace_path: str) -> tuple[bool, list[Violation]]:
    """Whether a Chrome trace (`.json` or `.json.gz`) keeps all rules, and the violations."""
    events = _load_events(trace_path)
    found = [violation for rule in _RULES for violation in rule(events)]
    return not found, found
