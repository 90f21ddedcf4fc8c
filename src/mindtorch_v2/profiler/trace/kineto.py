"""Reads a Chrome trace that PyTorch (Kineto) or this package wrote into a `Trace`."""

from __future__ import annotations

import gc
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from . import derived
from . import kineto_words as words
from .columns import Kind
from .trace import Frame, ThreadInfo, Trace, TraceBuilder

_GZIP_MAGIC = b"\x1f\x8b"
_STRUCTURE = frozenset({"schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceEvents", "traceName"})
_THREAD_NAME = re.compile(r"thread (-?\d+)(?: \((.*)\))?\Z", re.DOTALL)
_STREAM_NAME = re.compile(r"stream -?\d+ \Z")
_INPUT_KEYS = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
_MEMORY_ARGUMENTS = (("size_bytes", "Bytes", 0), ("address", "Addr", 0), ("total_bytes", "Total Allocated", 0),
                     ("reserved_bytes", "Total Reserved", 0), ("device", "Device Type", 0),
                     ("device_index", "Device Id", -1))

Event = dict[str, Any]


def read(path: str | os.PathLike[str]) -> Trace:
    """The trace in a `.json` or `.json.gz` file.

    Arrows, counters and instants other than `[memory]` carry nothing that a `Trace` holds and are passed over, as are
    arguments that only some devices write (registers, occupancy). A negative duration is read as 0. A file that is
    no such trace raises a ValueError that names the file and what is wrong with it.
    """
    name = os.fspath(path)
    try:
        with _collector_paused():
            return _trace(_load(name))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError) as error:
        detail = str(error) if isinstance(error, ValueError) else f"malformed content ({type(error).__name__}: {error})"
        raise ValueError(f"cannot read {name} as a Chrome trace: {detail}") from error


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without Python's garbage collector, which millions of new lists, none of them garbage, would keep busy."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _load(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        content = file.read()
    if content.startswith(_GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"the gzip stream is damaged or cut off ({error})") from error
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        try:
            content.decode()
        except UnicodeDecodeError:
            # PyTorch copies names into the file as they are; one that is not UTF-8 should not cost the whole trace.
            document = _load_replacing(content)
        else:
            raise ValueError(f"it is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise ValueError(f"the top level should be an object, and is a {type(document).__name__}")
    if not isinstance(document.get("traceEvents"), list):
        raise ValueError("it has no list traceEvents")
    for place, event in enumerate(document["traceEvents"]):
        if not isinstance(event, dict):
            raise ValueError(f"traceEvents[{place}] should be an object, and is a {type(event).__name__}")
        if not isinstance(event.get("args", {}), (dict, type(None))):
            raise ValueError(f"traceEvents[{place}] should have an object as args")
    return document


def _load_replacing(content: bytes) -> Any:
    try:
        return orjson.loads(content.decode("utf-8", "replace"))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from error


def _trace(document: dict[str, Any]) -> Trace:
    base_ns = document.get("baseTimeNanoseconds", 0)
    if isinstance(base_ns, bool) or not isinstance(base_ns, int):
        raise ValueError("baseTimeNanoseconds should be an integer")
    complete: list[Event] = []
    memory: list[Event] = []
    names: list[Event] = []
    start_ns = end_ns = None
    for event in document["traceEvents"]:
        phase = event.get("ph")
        if phase == "X":
            if event.get("cat") == "Trace":
                start_ns = _nanoseconds([event], "ts")[0]
            else:
                complete.append(event)
        elif phase == "M":
            names.append(event)
        elif phase == "i":
            if event.get("name") == "[memory]":
                memory.append(event)
            elif event.get("name") == "Record Window End":
                end_ns = _nanoseconds([event], "ts")[0]
        elif phase in ("B", "E"):
            raise ValueError("it has begin and end events (ph B and E), which Kineto does not write")
    build = TraceBuilder()
    columns, others = _columns(complete, build)
    threads = _Threads(names, build)
    device_lane = np.isin(columns["kind"], [int(kind) for kind in words.DEVICE_KINDS])
    columns["thread"] = threads.numbers(complete, device_lane)
    memory_columns = _memory_columns(memory)
    memory_columns["thread"] = threads.numbers(memory, np.zeros(len(memory), bool))
    build.add_columns(columns)
    build.add_memory_columns(memory_columns)
    metadata, dropped = _metadata(document, others)
    starts = [int(c.min()) for c in (columns["start_ns"], memory_columns["time_ns"]) if len(c)]
    ends = [int(c.max()) for c in (columns["end_ns"], memory_columns["time_ns"]) if len(c)]
    trace = build.finish(
        metadata=metadata, dropped=dropped, epoch_ns=base_ns,
        start_ns=int(start_ns) if start_ns is not None else min(starts, default=0),
        end_ns=int(end_ns) if end_ns is not None else max(ends, default=0))
    return _with_stacks(trace)


def _columns(complete: list[Event], build: TraceBuilder) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """All columns but thread and parent; and the categories of events whose kind is unknown, by name."""
    arguments: list[Event] = [event.get("args") or {} for event in complete]
    present = set().union(*arguments)

    def column(key: str, default: int) -> np.ndarray:
        if key not in present:
            return np.full(len(arguments), default, np.int64)
        return _integers([a.get(key, default) for a in arguments], key)

    def table(key: str, default: int, number: Callable[[str], int]) -> np.ndarray:
        if key not in present:
            return np.full(len(arguments), default, np.int64)
        return np.array([number(_string(a[key], key)) if key in a else default for a in arguments], np.int64)

    pairs: dict[tuple[str, str], int] = {}
    code = np.array([pairs.setdefault((e.get("cat", ""), e["name"]), len(pairs)) for e in complete], np.int64)
    kinds, others, engine = [], {}, set()
    for cat, called in pairs:
        kinds.append(words.kind_of(_string(cat, "cat"), _string(called, "name")))
        if kinds[-1] is Kind.OTHER:
            others[called] = cat
        elif kinds[-1] is Kind.BACKWARD:
            engine.add(called[len(words.ENGINE_PREFIX):])
    of_engine = np.array([called in engine for _, called in pairs], bool)
    categories = {cat for cat, _ in pairs}
    pair_names = np.array([build.name(called) for _, called in pairs], np.int64)
    kind = np.array(kinds, np.int64)[code] if pairs else np.zeros(0, np.int64)
    name = pair_names[code] if pairs else kind
    if pairs:
        function = (kind == Kind.OP) & (of_engine[code] | (column("Fwd thread id", 0) != 0))
        kind = np.where(function, int(Kind.BACKWARD_FUNCTION), kind)
    start = _nanoseconds(complete, "ts")
    end = start + np.maximum(_nanoseconds(complete, "dur", 0), 0)
    step = derived.steps(kind, name, start, end, build.names)
    if words.OWN_STEP in present:
        step = np.array([a.get(words.OWN_STEP, s) for a, s in zip(arguments, step.tolist(), strict=True)], np.int64)
    stated_kind = column(words.OWN_KIND, -1)
    if ((stated_kind < -1) | (stated_kind > max(Kind))).any():
        raise ValueError(f"{words.OWN_KIND} should be a number up to {int(max(Kind))}")
    kind = np.where(stated_kind >= 0, stated_kind, kind)
    on_device = np.isin(kind, [int(k) for k in words.DEVICE_KINDS])
    gpu_scope = np.array([cat == "gpu_user_annotation" for cat, _ in pairs], bool)[code] if pairs else on_device
    default_device = np.where(on_device | gpu_scope, int(words.accelerator(categories)), 0)
    device = column(words.OWN_DEVICE, -1)
    return {
        "name": name, "overload": table(words.OWN_OVERLOAD, 0, build.name), "kind": kind, "start_ns": start,
        "end_ns": end, "sequence": column("Sequence number", -1), "inputs": _inputs(arguments, build),
        "stack": _stated_stacks(arguments, present, build), "module": table(words.OWN_MODULE, -1, build.name),
        "step": step, "device": np.where(device >= 0, device, default_device),
        "device_index": np.where(on_device, column("device", -1), column(words.OWN_DEVICE_INDEX, -1)),
        "flops": column(words.OWN_FLOPS, -1), "correlation": column("correlation", 0),
    }, others


def _inputs(arguments: list[Event], build: TraceBuilder) -> np.ndarray:
    known: dict[bytes, int] = {}
    result = []
    for values in arguments:
        if "Input Dims" not in values:
            result.append(-1)
            continue
        key = orjson.dumps([values.get(k) for k in (*_INPUT_KEYS, words.OWN_INPUTS)])
        found = known.get(key)
        if found is None:
            if words.OWN_INPUTS in values:
                parsed = tuple(words.decode_input(values[words.OWN_INPUTS]))
            else:
                parsed = words.parse_inputs(values)
            found = known[key] = build.input(parsed)
        result.append(found)
    return np.array(result, np.int64)


def _stated_stacks(arguments: list[Event], present: set[str], build: TraceBuilder) -> np.ndarray:
    """Stacks written out in the file: an index, -1 for nothing said, -2 for an explicit "none"."""
    if words.OWN_STACK not in present:
        return np.full(len(arguments), -1, np.int64)
    result = []
    for values in arguments:
        line = values.get(words.OWN_STACK)
        if line is None:
            result.append(-1)
        elif words.OWN_FRAMES in values:
            result.append(build.stack([Frame(*frame) for frame in values[words.OWN_FRAMES]]))
        else:
            result.append(build.stack([words.parse_frame(text) for text in line.split(";")]) if line else -2)
    return np.array(result, np.int64)


def _with_stacks(trace: Trace) -> Trace:
    """The trace with stacks from Python events where the file states none."""
    stated = trace.events["stack"]
    told, table = derived.stacks(trace.events, trace.names)
    if not table and not (stated == -2).any():
        return trace
    stacks = list(trace.stacks)
    numbers = {frames: number for number, frames in enumerate(stacks)}
    for frames in table:
        if numbers.setdefault(frames, len(stacks)) == len(stacks):
            stacks.append(frames)
    told = np.array([*(numbers[frames] for frames in table), -1], np.int32)[told]
    stack = np.where(stated == -1, told, np.maximum(stated, -1)).astype(np.int32)
    stack.flags.writeable = False
    return replace(trace, events={**trace.events, "stack": stack}, stacks=stacks)


def _memory_columns(memory: list[Event]) -> dict[str, np.ndarray]:
    arguments = [event.get("args") or {} for event in memory]
    columns = {
        name: _integers([a.get(key, default) for a in arguments], key) for name, key, default in _MEMORY_ARGUMENTS
    }
    columns["time_ns"] = _nanoseconds(memory, "ts")
    return columns


class _Threads:
    """The threads of a file, in the order it names them."""

    def __init__(self, names: list[Event], build: TraceBuilder) -> None:
        self._build = build
        self._names: dict[tuple[Any, Any], str] = {}
        self._processes: dict[Any, str] = {}
        for event in names:
            if event.get("name") == "thread_name":
                self._names[event["pid"], event["tid"]] = _string(event["args"]["name"], "a thread's name")
            elif event.get("name") == "process_name":
                self._processes[event["pid"]] = _string(event["args"]["name"], "a process's name")
        self._known: dict[tuple[Any, Any], int] = {}
        self._pending = list(self._names)

    def numbers(self, events: list[Event], device_lane: np.ndarray) -> np.ndarray:
        """The thread of each event, which `device_lane` marks where it ran on a device."""
        keys: dict[tuple[Any, Any], int] = {}
        code = [keys.setdefault((e["pid"], e["tid"]), len(keys)) for e in events]
        on_device = {list(keys)[c] for c in np.unique(np.array(code, np.int64)[device_lane]).tolist()}
        for key in [*self._pending, *keys]:
            if key not in self._known:
                self._known[key] = self._build.thread(self._info(key, key in on_device))
        self._pending = []
        numbers = np.array([self._known[key] for key in keys], np.int64)
        return numbers[np.array(code, np.int64)] if events else np.zeros(0, np.int64)

    def _info(self, key: tuple[Any, Any], on_device: bool) -> ThreadInfo:
        pid, tid = key
        name = self._names.get(key, "")
        if _STREAM_NAME.match(name):
            name = name[:-1]
        found = None if on_device else _THREAD_NAME.match(name)
        if found and found[1] == str(tid):
            name = found[2] or ""
        return ThreadInfo(_identity(pid), _identity(tid), name or (tid if isinstance(tid, str) else ""),
                          self._processes.get(pid, "python"))


def _identity(value: Any) -> int:
    """A process or thread id; text that is no number gets a number of its own that is the same each time."""
    if isinstance(value, int):
        return int(value)
    text = _string(value, "pid and tid")
    return int(text) if text.lstrip("-").isdecimal() else zlib.crc32(text.encode())


def _metadata(document: dict[str, Any], others: dict[str, str]) -> tuple[dict[str, Any], int]:
    metadata = {key: value for key, value in document.items() if key not in _STRUCTURE}
    if metadata.get("deviceProperties") == []:
        del metadata["deviceProperties"]
    dropped = 0
    own = metadata.get("mindtorch_v2")
    if isinstance(own, dict) and "dropped_events" in own:
        dropped = int(own["dropped_events"])
        own = {key: value for key, value in own.items() if key != "dropped_events"}
        metadata["mindtorch_v2"] = own
        if not own:
            del metadata["mindtorch_v2"]
    if others:
        metadata["other_categories"] = others
    return metadata, dropped


def _nanoseconds(events: list[Event], key: str, default: int | None = None) -> np.ndarray:
    """A time in the file's microseconds, as nanoseconds."""
    values = [event[key] for event in events] if default is None else [event.get(key, default) for event in events]
    array = np.array(values) if values else np.zeros(0)
    if array.dtype.kind in "iu":
        return array.astype(np.int64) * 1000
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError(f"{key} should be a number in every event")
    return np.rint(array * 1000).astype(np.int64)


def _integers(values: list[Any], key: str) -> np.ndarray:
    array = np.array(values) if values else np.zeros(0, np.int64)
    if array.dtype.kind not in "iub":
        raise ValueError(f"{key} should be an integer in every event")
    return array.astype(np.int64)


def _string(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} should be a string, and is a {type(value).__name__}")
    return value
