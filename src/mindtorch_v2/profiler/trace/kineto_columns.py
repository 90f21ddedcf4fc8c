"""Columns of a Trace from the events of a Kineto file, taken in a batch at a time.

A parsed event is several dictionaries and lists; a batch is turned into arrays while it is still in the cache and then
let go, so that a large file never exists as Python objects all at once.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np
import orjson

from . import derived
from . import kineto_words as words
from .columns import Kind
from .trace import Frame, ThreadInfo, TraceBuilder

_THREAD_NAME = re.compile(r"thread (-?\d+)(?: \((.*)\))?\Z", re.DOTALL)
_STREAM_NAME = re.compile(r"stream -?\d+ \Z")
_INPUT_KEYS = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims", words.OWN_INPUTS)
# Name of the array, key in `args`, and what it means when it is absent.
_EVENT_ARGUMENTS = (
    ("sequence", "Sequence number", -1), ("forward_thread", "Fwd thread id", 0), ("correlation", "correlation", 0),
    ("record_id", "Record function id", 0),
    ("lane_device", "device", -1), ("flops", words.OWN_FLOPS, -1), ("stated_kind", words.OWN_KIND, -1),
    ("stated_step", words.OWN_STEP, -1), ("stated_device", words.OWN_DEVICE, -1),
    ("stated_device_index", words.OWN_DEVICE_INDEX, -1))
_MEMORY_ARGUMENTS = (("size_bytes", "Bytes", 0), ("address", "Addr", 0), ("total_bytes", "Total Allocated", 0),
                     ("reserved_bytes", "Total Reserved", 0), ("device", "Device Type", 0),
                     ("device_index", "Device Id", -1))

_LARGEST_US = 9e15
_DEVICE_KINDS = [int(kind) for kind in words.DEVICE_KINDS]

Event = dict[str, Any]


class KinetoColumns:
    """Collects events; `fill` gives what was collected to a TraceBuilder."""

    def __init__(self, build: TraceBuilder) -> None:
        self.build = build
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self.other_categories: dict[str, str] = {}
        self._pairs: dict[tuple[str, str], int] = {}  # category and name
        self._lanes: dict[tuple[Any, Any], int] = {}  # pid and tid
        self._thread_names: dict[tuple[Any, Any], str] = {}
        self._process_names: dict[Any, str] = {}
        self._inputs: dict[bytes, int] = {}
        self._events: list[dict[str, np.ndarray]] = []
        self._memory: list[dict[str, np.ndarray]] = []
        self._failures: list[dict[str, np.ndarray]] = []

    def add(self, events: list[Any]) -> None:
        """Take in a batch of the file's events."""
        complete: list[Event] = []
        memory: list[Event] = []
        failures: list[Event] = []
        for event in events:
            if not isinstance(event, dict):
                raise ValueError(f"an item of traceEvents should be an object, and is a {type(event).__name__}")
            phase = event.get("ph")
            if phase == "X":
                if event.get("cat") == "Trace":
                    self.start_ns = int(_nanoseconds([event], "ts")[0])
                else:
                    complete.append(event)
            elif phase == "i":
                if event.get("name") == "[memory]":
                    memory.append(event)
                elif event.get("name") == "[OutOfMemory]":
                    failures.append(event)
                elif event.get("name") == "Record Window End":
                    self.end_ns = int(_nanoseconds([event], "ts")[0])
            elif phase == "M":
                self._add_name(event)
            elif phase in ("B", "E"):
                raise ValueError("it has begin and end events (ph B and E), which Kineto does not write")
        if complete:
            self._events.append(self._event_batch(complete))
        if memory:
            self._memory.append(self._memory_batch(memory))
        if failures:
            self._failures.append(self._memory_batch(failures))

    def fill(self) -> None:
        """Give everything to the builder, and fill in the recording's start and end where the file does not say."""
        memory = _joined(self._memory, ("time_ns", "lane", *(name for name, _, _ in _MEMORY_ARGUMENTS)))
        batch = _joined(self._events, ("pair", "lane", "start_ns", "end_ns", "inputs", "stack", "overload", "module",
                                       *(name for name, _, _ in _EVENT_ARGUMENTS)))
        columns = self._event_columns(batch)
        threads = self._threads(set(np.unique(batch["lane"][np.isin(columns["kind"], _DEVICE_KINDS)]).tolist()))
        columns["thread"] = threads[batch["lane"]]
        memory["thread"] = threads[memory.pop("lane")]
        for failures in self._failures:
            failures["thread"] = threads[failures.pop("lane")]
            self.build.add_failure_columns(failures)
        self.build.add_columns(columns)
        self.build.add_memory_columns(memory)
        if self.start_ns is None:
            self.start_ns = min((int(c.min()) for c in (columns["start_ns"], memory["time_ns"]) if len(c)), default=0)
        if self.end_ns is None:
            self.end_ns = max((int(c.max()) for c in (columns["end_ns"], memory["time_ns"]) if len(c)), default=0)

    def _add_name(self, event: Event) -> None:
        if event.get("name") == "thread_name":
            self._thread_names[event["pid"], event["tid"]] = _string(event["args"]["name"], "a thread's name")
        elif event.get("name") == "process_name":
            self._process_names[event["pid"]] = _string(event["args"]["name"], "a process's name")

    def _event_batch(self, complete: list[Event]) -> dict[str, np.ndarray]:
        arguments = [_arguments(event) for event in complete]
        present = set().union(*arguments)
        pairs, lanes = self._pairs, self._lanes
        start = _nanoseconds(complete, "ts")
        batch = {
            "pair": np.array([pairs.setdefault((e.get("cat", ""), e["name"]), len(pairs)) for e in complete], np.int64),
            "lane": np.array([lanes.setdefault((e["pid"], e["tid"]), len(lanes)) for e in complete], np.int64),
            "start_ns": start, "end_ns": start + np.maximum(_nanoseconds(complete, "dur", 0), 0),
            "inputs": self._input_numbers(arguments, present), "stack": self._stated_stacks(arguments, present),
            "overload": self._name_numbers(arguments, present, words.OWN_OVERLOAD, 0),
            "module": self._name_numbers(arguments, present, words.OWN_MODULE, -1),
        }
        for name, key, default in _EVENT_ARGUMENTS:
            batch[name] = _integers([a.get(key, default) for a in arguments], key) if key in present else np.full(
                len(arguments), default, np.int64)
        return batch

    def _memory_batch(self, memory: list[Event]) -> dict[str, np.ndarray]:
        arguments = [_arguments(event) for event in memory]
        lanes = self._lanes
        return {
            "time_ns": _nanoseconds(memory, "ts"),
            "lane": np.array([lanes.setdefault((e["pid"], e["tid"]), len(lanes)) for e in memory], np.int64),
            **{name: _integers([a.get(key, default) for a in arguments], key)
               for name, key, default in _MEMORY_ARGUMENTS},
        }

    def _event_columns(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The columns of a Trace, apart from thread and parent."""
        kinds, engine = [], set()
        for cat, called in self._pairs:
            kinds.append(words.kind_of(_string(cat, "cat"), _string(called, "name")))
            if kinds[-1] is Kind.OTHER:
                self.other_categories[called] = cat
            elif kinds[-1] is Kind.BACKWARD:
                engine.add(called[len(words.ENGINE_PREFIX):])
        pair = batch["pair"]
        name = np.array([self.build.name(called) for _, called in self._pairs], np.int64)[pair]
        kind = np.array(kinds, np.int64)[pair]
        of_engine = np.array([called in engine for _, called in self._pairs], bool)[pair]
        function = (kind == Kind.OP) & (of_engine | (batch["forward_thread"] != 0))
        kind = np.where(function, int(Kind.BACKWARD_FUNCTION), kind)
        step = derived.steps(kind, name, batch["start_ns"], batch["end_ns"], self.build.names)
        stated = batch["stated_kind"]
        if ((stated < -1) | (stated > max(Kind))).any():
            raise ValueError(f"{words.OWN_KIND} should be a number up to {int(max(Kind))}")
        kind = np.where(stated >= 0, stated, kind)
        on_device = np.isin(kind, _DEVICE_KINDS)
        gpu_scope = np.array([cat == "gpu_user_annotation" for cat, _ in self._pairs], bool)[pair]
        accelerator = int(words.accelerator({cat for cat, _ in self._pairs}))
        device = np.where(on_device | gpu_scope, accelerator, 0)
        return {
            **{key: batch[key] for key in ("start_ns", "end_ns", "inputs", "stack", "overload", "module", "sequence",
                                           "correlation", "flops", "record_id")},
            "name": name, "kind": kind, "step": np.where(batch["stated_step"] >= 0, batch["stated_step"], step),
            "device": np.where(batch["stated_device"] >= 0, batch["stated_device"], device),
            "device_index": np.where(on_device, batch["lane_device"], batch["stated_device_index"]),
        }

    def _name_numbers(self, arguments: list[Event], present: set[str], key: str, default: int) -> np.ndarray:
        if key not in present:
            return np.full(len(arguments), default, np.int64)
        return np.array([self.build.name(_string(a[key], key)) if key in a else default for a in arguments], np.int64)

    def _input_numbers(self, arguments: list[Event], present: set[str]) -> np.ndarray:
        if "Input Dims" not in present:
            return np.full(len(arguments), -1, np.int64)
        known = self._inputs
        result = []
        for values in arguments:
            if "Input Dims" not in values:
                result.append(-1)
                continue
            key = orjson.dumps([values.get(k) for k in _INPUT_KEYS])
            found = known.get(key)
            if found is None:
                own = values.get(words.OWN_INPUTS)
                parsed = words.parse_inputs(values) if own is None else tuple(words.decode_input(own))
                found = known[key] = self.build.input(parsed)
            result.append(found)
        return np.array(result, np.int64)

    def _stated_stacks(self, arguments: list[Event], present: set[str]) -> np.ndarray:
        """Stacks written out in the file: an index, -1 for nothing said, -2 for an explicit "none"."""
        if words.OWN_STACK not in present:
            return np.full(len(arguments), -1, np.int64)
        result = []
        for values in arguments:
            line = values.get(words.OWN_STACK)
            if line is None:
                result.append(-1)
            elif words.OWN_FRAMES in values:
                result.append(self.build.stack([Frame(*frame) for frame in values[words.OWN_FRAMES]]))
            else:
                frames = [words.parse_frame(text) for text in _string(line, words.OWN_STACK).split(";")]
                result.append(self.build.stack(frames) if line else -2)
        return np.array(result, np.int64)

    def _threads(self, device_lanes: set[int]) -> np.ndarray:
        """The builder's thread for each lane: first those that the file names, in its order."""
        for key in self._thread_names:
            self._lanes.setdefault(key, len(self._lanes))
        numbers = {}
        for key in [*self._thread_names, *self._lanes]:
            lane = self._lanes[key]
            if lane not in numbers:
                numbers[lane] = self.build.thread(self._thread_info(key, lane in device_lanes))
        return np.array([numbers[lane] for lane in range(len(numbers))], np.int64)

    def _thread_info(self, key: tuple[Any, Any], on_device: bool) -> ThreadInfo:
        pid, tid = key
        name = self._thread_names.get(key, "")
        if _STREAM_NAME.match(name):
            name = name[:-1]
        found = None if on_device else _THREAD_NAME.match(name)
        if found and found[1] == str(tid):
            name = found[2] or ""
        return ThreadInfo(_identity(pid), _identity(tid), name or (tid if isinstance(tid, str) else ""),
                          self._process_names.get(pid, "python"))




def _joined(batches: list[dict[str, np.ndarray]], keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    return {
        key: np.concatenate([batch[key] for batch in batches]) if batches else np.zeros(0, np.int64) for key in keys
    }


def _arguments(event: Event) -> Event:
    values = event.get("args")
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ValueError("an event should have an object as args")
    return values


def _identity(value: Any) -> int:
    """A process or thread id; text that is no number gets a number of its own that is the same each time."""
    if isinstance(value, int):
        return int(value)
    text = _string(value, "pid and tid")
    return int(text) if text.lstrip("-").isdecimal() else zlib.crc32(text.encode())


def _nanoseconds(events: list[Event], key: str, default: int | None = None) -> np.ndarray:
    """A time in the file's microseconds, as nanoseconds."""
    values = [event[key] for event in events] if default is None else [event.get(key, default) for event in events]
    array = np.array(values) if values else np.zeros(0)
    if array.dtype.kind in "iu":
        return array.astype(np.int64) * 1000
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        raise ValueError(f"{key} should be a number in every event")
    if (np.abs(array) >= _LARGEST_US).any():
        raise ValueError(f"{key} is too large for a time in microseconds")
    # Times since the file's base have up to 16 digits, all that a float holds: multiplying them as they are would round
    # once too often. The part before the point and the part behind it are exact on their own.
    whole = np.floor(array)
    return whole.astype(np.int64) * 1000 + np.rint((array - whole) * 1000).astype(np.int64)


def _integers(values: list[Any], key: str) -> np.ndarray:
    array = np.array(values) if values else np.zeros(0, np.int64)
    if array.dtype.kind not in "iub":
        raise ValueError(f"{key} should be an integer in every event")
    return array.astype(np.int64)


def _string(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} should be a string, and is a {type(value).__name__}")
    return value
