"""A trace as a Chrome trace file, in the format of PyTorch's Kineto.

Perfetto, chrome://tracing and scripts written for PyTorch's files read it. Values for which PyTorch has no key have
keys of our own: `Module`, `FLOPs`, `Overload`, `Inputs`, `Step`, `Kind`, `Call stack` in an event's `args`, and
`mindtorch_v2` at the top. `mtprof.load` turns the file back into an equal trace.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from ..devices import DeviceType
from ..files import write_atomically
from ..json_text import microseconds, text
from ..schema import FLAGS, Kind
from ..store import kineto_sides
from ..store import kineto_words as words
from ..tables.links import forward_of
from ..trace import ThreadInfo, Trace
from . import chrome_links as links
from .chrome_events import EventText, failure_lines, memory_chunks

_SPANS_SORT_INDEX = 0x20000000
_FIRST_DEVICE_SORT_INDEX = 5_000_000  # larger than any pid, so that devices come after processes
FORWARD_BACKWARD = "forward_backward"  # False under `mindtorch_v2` at the top: no arrows to backward functions
_STRUCTURE = frozenset({"schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName",
                        "other_categories", kineto_sides.TOP})


def write(trace: Trace, path: str | os.PathLike[str], *, metadata: dict[str, str] | None = None,
          with_overloads: bool = False) -> None:
    """Write `trace` to `path`; a name that ends in `.gz` is compressed. `with_overloads` names ops `aten::add.Tensor`.

    `metadata` maps further top-level keys to JSON text, as `add_metadata_json` takes it. Text that is not JSON is
    written as a string, so the file is valid in any case.
    """
    write_atomically(path, _chunks(trace, os.fsdecode(path), metadata or {}, with_overloads))


def base_time_ns(trace: Trace) -> int:
    """The zero of the file's times: the same instant for all traces of a quarter of a year."""
    times = [trace.start_ns]
    columns = trace.events["start_ns"], trace.optional("memory")["time_ns"]
    times += [int(column.min()) for column in columns if len(column)]
    return (min(times) + trace.epoch_ns) // words.BASE_STEP_NS * words.BASE_STEP_NS


def _chunks(trace: Trace, path: str, metadata: dict[str, str], with_overloads: bool) -> Iterator[bytes]:
    base_ns = base_time_ns(trace)
    lanes = _lanes(trace)
    forward = forward_of(trace)
    launches = links.launches(trace)
    yield _opening(trace, base_ns, metadata)
    yield _names(trace, lanes, base_ns)
    yield from EventText(trace, base_ns, lanes, forward, _external_ids(trace, launches), with_overloads).chunks()
    if trace.metadata.get("mindtorch_v2", {}).get(FORWARD_BACKWARD, True):
        yield _arrows(trace, lanes, base_ns, "fwdbwd", links.forward_backward(trace, forward))
    yield _arrows(trace, lanes, base_ns, "ac2g", launches)
    yield _arrows(trace, lanes, base_ns, "collective_wait", links.collective_waits(trace))
    yield from memory_chunks(trace, base_ns, lanes)
    yield failure_lines(trace, base_ns, lanes)
    yield _closing(trace, base_ns, path)


def _lanes(trace: Trace) -> list[ThreadInfo]:
    """The threads, with device work moved out of processes that also have host threads."""
    on_device = links.is_device_work(trace)
    owner = dict(zip(trace.events["thread"][on_device].tolist(), trace.events["device_index"][on_device].tolist(),
                     strict=True))
    host = {info.pid for number, info in enumerate(trace.threads) if number not in owner}
    return [
        info._replace(pid=owner[number]) if number in owner and info.pid in host and owner[number] not in host else info
        for number, info in enumerate(trace.threads)
    ]


def _external_ids(trace: Trace, launches: links.Links) -> np.ndarray:
    """`External id` of each event: its own row for host events, the row of the causing op for launches and device
    work."""
    events = trace.events
    result = np.arange(1, len(trace) + 1)
    caused = (events["kind"] == Kind.LAUNCH) & (events["parent"] >= 0)
    result[caused] = events["parent"][caused] + 1
    result[launches.target] = result[launches.source]
    return result


def _opening(trace: Trace, base_ns: int, metadata: dict[str, str]) -> bytes:
    known = {key: value for key, value in trace.metadata.items() if key not in _STRUCTURE}
    own = known.pop("mindtorch_v2", None)
    top: dict[str, str] = {"schemaVersion": "1", "deviceProperties": text(known.pop("deviceProperties", []))}
    top["trace_id"] = text(known.pop("trace_id", None) or _trace_id(trace))
    for flag in FLAGS:
        if known.pop(flag, False):
            top[flag] = "1"
    top["host_name"] = text(known.pop("host_name", None) or platform.node())
    top.update((key, text(value)) for key, value in known.items())
    top.update((key, _json_or_string(value)) for key, value in metadata.items() if key not in _STRUCTURE)
    if own is not None or trace.dropped:
        top["mindtorch_v2"] = text({**(own or {}), **({"dropped_events": trace.dropped} if trace.dropped else {})})
    if sides := kineto_sides.top(trace):
        top[kineto_sides.TOP] = text(sides)
    top["displayTimeUnit"] = '"ms"'
    top["baseTimeNanoseconds"] = str(base_ns)
    lines = [f"{text(key)}: {value},\n" for key, value in top.items()]
    return ("{\n" + "".join(lines) + '"traceEvents": [\n').encode()


def _trace_id(trace: Trace) -> str:
    """An identity that is the same each time this trace is written."""
    facts = f"{trace.start_ns + trace.epoch_ns} {trace.end_ns + trace.epoch_ns} {len(trace)} {trace.threads}"
    return hashlib.sha256(facts.encode("utf-8", "replace")).hexdigest()[:32].upper()


def _json_or_string(value: str) -> str:
    """The user's JSON unchanged, blanks included: Holistic Trace Analysis looks for them. Other text becomes a
    string."""
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return text(value)
    return value


def _names(trace: Trace, lanes: list[ThreadInfo], base_ns: int) -> bytes:
    """Rows that name processes and threads and put them in order."""
    ts = microseconds(trace.start_ns + trace.epoch_ns - base_ns)
    on_device = links.is_device_work(trace)
    device_of = dict(zip(trace.events["thread"][on_device].tolist(),
                         zip(trace.events["device"][on_device].tolist(),
                             trace.events["device_index"][on_device].tolist(), strict=True), strict=False))
    lines = []

    def add(name: str, pid: int, tid: int, /, **args: Any) -> None:
        lines.append(f'{{"ph":"M","name":"{name}","ts":{ts},"pid":{pid},"tid":{tid},"args":{text(args)}}},\n')

    described = set()
    for number, lane in enumerate(lanes):
        if lane.pid not in described:
            described.add(lane.pid)
            device, index = device_of.get(number, (int(DeviceType.CPU), -1))
            maker = "NPU" if device == DeviceType.PrivateUse1 else "GPU"
            label = "CPU" if number not in device_of else f"{maker} {index}"
            add("process_name", lane.pid, 0, name=lane.process_name)
            add("process_labels", lane.pid, 0, labels=label)
            add("process_sort_index", lane.pid, 0,
                sort_index=lane.pid if number not in device_of else _FIRST_DEVICE_SORT_INDEX + index)
        if number in device_of:
            name = lane.name or f"stream {lane.tid}"
        else:
            name = f"thread {lane.tid} ({lane.name})" if lane.name else f"thread {lane.tid}"
        add("thread_name", lane.pid, lane.tid, name=name)
        add("thread_sort_index", lane.pid, lane.tid, sort_index=lane.tid)
    return "".join(lines).encode()


def _arrows(trace: Trace, lanes: list[ThreadInfo], base_ns: int, kind: str, arrows: links.Links) -> bytes:
    """Start and finish of each arrow; several finishes may share a start."""
    offset = trace.epoch_ns - base_ns
    places = [f'"pid":{lane.pid},"tid":{lane.tid},' for lane in lanes]
    thread, start = trace.events["thread"], trace.events["start_ns"] + offset
    first = np.zeros(len(arrows.identity), bool)
    first[np.unique(arrows.identity, return_index=True)[1]] = True
    lines = []
    for opens, source, target, number in zip(first.tolist(), arrows.source.tolist(), arrows.target.tolist(),
                                             arrows.identity.tolist(), strict=True):
        if opens:
            lines.append(f'{{"ph":"s","id":{number},{places[thread[source]]}"ts":{microseconds(int(start[source]))},'
                         f'"cat":"{kind}","name":"{kind}"}},\n')
        lines.append(f'{{"ph":"f","id":{number},{places[thread[target]]}"ts":{microseconds(int(start[target]))},'
                     f'"cat":"{kind}","name":"{kind}","bp":"e"}},\n')
    return "".join(lines).encode()


def _closing(trace: Trace, base_ns: int, path: str) -> bytes:
    """The rows about the recording as a whole, under Kineto's names."""
    start = microseconds(trace.start_ns + trace.epoch_ns - base_ns)
    end = microseconds(trace.end_ns + trace.epoch_ns - base_ns)
    duration = microseconds(trace.end_ns - trace.start_ns)
    if float(start) + float(duration) > float(end):
        # Rounded as readers add: the span must not seem to end after the window.
        duration = microseconds(max(0, trace.end_ns - trace.start_ns - 1))
    return (
        f'{{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":{start},'
        f'"dur":{duration},"args":{{"Op count":0}}}},\n'
        f'{{"ph":"M","name":"process_sort_index","ts":{start},"pid":"Spans","tid":0,'
        f'"args":{{"sort_index":{_SPANS_SORT_INDEX}}}}},\n'
        f'{{"ph":"i","s":"g","name":"Iteration Start: PyTorch Profiler","pid":"Traces",'
        f'"tid":"Trace PyTorch Profiler","ts":{start}}},\n'
        f'{{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":{end}}}\n'
        f'],\n"traceName": {text(path)}\n}}\n'
    ).encode()
