"""Columns of a Trace from the events of a Kineto file, a batch at a time.

Values that repeat in a file (names, threads, inputs) come numbered, and are parsed once per distinct text after the
last batch. A column that no event of a batch states takes no memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson

from ..arguments import decode_input
from ..builder import TraceBuilder
from ..devices import DeviceType
from ..names import ENGINE_PREFIX, parse_stack
from ..schema import DEVICE_KINDS, TABLES, Kind
from ..tables import derived
from ..tables.distinct import distinct
from ..tables.nesting import rows_around
from ..trace import Frame, ThreadInfo, Trace
from . import kineto_words as words
from .kineto_scan import ABSENT, FIXED, nanoseconds
from .kineto_sides import SIDES, SideRows

_THREAD_NAME = re.compile(r"thread (-?\d+)(?: \((.*)\))?\Z", re.DOTALL | re.IGNORECASE)
_STREAM_NAME = re.compile(r"stream -?\d+ \Z")
_WITH_OVERLOAD = re.compile(r"(aten::\w+)\.(\w+)")  # other names may contain a dot
_DEVICE_LABEL = re.compile(r"[A-Z]+ (\d{1,4})\Z")
_INPUT_KEYS = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims", words.OWN_INPUTS)
# Column, key in `args`, default, and the type that it is stored in.
_EVENT_INTS: tuple[tuple[str, str, int, type[np.signedinteger[Any]]], ...] = (
    ("sequence", "Sequence number", -1, np.int64), ("forward_thread", "Fwd thread id", 0, np.int64),
    ("correlation", "correlation", 0, np.int64), ("connection", "connection_id", 0, np.int64),
    ("record_id", "Record function id", 0, np.int64), ("lane_device", "device", -1, np.int16),
    ("flops", words.OWN_FLOPS, -1, np.int64), ("stated_kind", words.OWN_KIND, -1, np.int16),
    ("stated_step", words.OWN_STEP, -1, np.int32), ("stated_device", words.OWN_DEVICE, -1, np.int16),
    ("stated_device_index", words.OWN_DEVICE_INDEX, -1, np.int16), ("line", words.OWN_LINE, 0, np.int32))
_MEMORY_INTS = (("size_bytes", "Bytes", 0), ("address", "Addr", 0), ("total_bytes", "Total Allocated", 0),
                ("reserved_bytes", "Total Reserved", 0), ("device", "Device Type", 0),
                ("device_index", "Device Id", -1), ("line", words.OWN_LINE, 0))

# What the scanner looks for. A key that both kinds of events have serves both; its default is filled in later.
_KEYS = tuple(dict.fromkeys([key for _, key, _, _ in _EVENT_INTS] + [key for _, key, _ in _MEMORY_INTS]))
INTS = tuple(key.encode() for key in _KEYS)
DEFAULTS = np.full(len(INTS), ABSENT, np.int64)
TEXTS = tuple(key.encode() for key in (
    *_INPUT_KEYS, words.OWN_STACK, words.OWN_FRAMES, words.OWN_OVERLOAD, words.OWN_MODULE,
    *(column.kineto for table in SIDES for column in table if column.kineto)))


class _Parts:
    """A column under construction: arrays of one type, and stretches of its default."""

    def __init__(self, dtype: type[np.signedinteger[Any]], default: int, what: str = "") -> None:
        self.dtype, self.default, self.what = dtype, default, what
        self.stated = False
        self._parts: list[np.ndarray | int] = []

    def add(self, values: np.ndarray) -> None:
        """Add a piece; `ABSENT` stands for the default."""
        if self.default != ABSENT and (values == ABSENT).all():
            self._parts.append(len(values))
            return
        self.stated = True
        values = np.where(values == ABSENT, self.default, values)
        limits = np.iinfo(self.dtype)
        if len(values) and not limits.min <= int(values.min()) <= int(values.max()) <= limits.max:
            raise ValueError(f"{self.what} should be an integer of {limits.bits} bits in every event")
        self._parts.append(values.astype(self.dtype))

    def take(self) -> np.ndarray:
        """The whole column; the pieces are released."""
        parts, self._parts = self._parts, []
        whole = [np.full(part, self.default, self.dtype) if isinstance(part, int) else part for part in parts]
        return np.concatenate(whole) if whole else np.zeros(0, self.dtype)


class KinetoColumns:
    """Collects events; `fill` passes what was collected to a TraceBuilder."""

    def __init__(self, build: TraceBuilder) -> None:
        self.build = build
        self.with_memory = False  # whether the file says that memory was recorded
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self.count = 0
        self.other_categories: dict[str, str] = {}
        self._thread_names: dict[tuple[Any, Any], str] = {}
        self._process_names: dict[Any, str] = {}
        self._process_labels: dict[Any, str] = {}
        self._flows: list[tuple[str, str, tuple[Any, Any], int]] = []  # phase, identity, lane, time
        self._inputs: dict[bytes, int] = {}
        self._columns = {"pair": _Parts(np.int32, ABSENT), "lane": _Parts(np.int32, ABSENT),
                         "start_ns": _Parts(np.int64, ABSENT), "duration": _Parts(np.int64, 0),
                         "rest": _Parts(np.int32, ABSENT),
                         **{name: _Parts(dtype, default, key) for name, key, default, dtype in _EVENT_INTS}}
        self._instants = {"pair": _Parts(np.int32, ABSENT), "lane": _Parts(np.int32, ABSENT),
                          "time_ns": _Parts(np.int64, ABSENT),
                          **{name: _Parts(np.int64, default, key) for name, key, default in _MEMORY_INTS}}

    def add(self, rows: np.ndarray, others: Sequence[bytes]) -> None:
        """Add a batch as the scanner returns it."""
        for raw in others:
            self._add_other(_loads(raw))
        instant = rows[0] == ord("i")
        if instant.any():
            self._add_rows(self._instants, rows[:, instant], ("pair", "lane", "time_ns"), (1, 2, 3), _MEMORY_INTS)
            rows = rows[:, ~instant]
        self.count += rows.shape[1]
        self._add_rows(self._columns, rows, ("pair", "lane", "start_ns", "duration", "rest"), (1, 2, 3, 4, 5),
                       _EVENT_INTS)

    def _add_rows(self, columns: dict[str, _Parts], rows: np.ndarray, names: Sequence[str], places: Sequence[int],
                  ints: Sequence[tuple[Any, ...]]) -> None:
        for name, place in zip(names, places):
            columns[name].add(rows[place])
        for name, key, *_ in ints:
            columns[name].add(rows[FIXED + _KEYS.index(key)])

    def _add_other(self, event: dict[str, Any]) -> None:
        phase, name = event.get("ph"), event.get("name")
        if phase == "M":
            lane, values = (event.get("pid"), event.get("tid")), event.get("args")
            if not isinstance(values, dict) or not all(isinstance(part, (int, str, type(None))) for part in lane):
                raise ValueError("an event that names something (ph M) should have an object as args")
            if name == "thread_name":
                self._thread_names[lane] = _string(values.get("name"), "a thread's name")
            elif name == "process_name":
                self._process_names[lane[0]] = _string(values.get("name"), "a process's name")
            elif name == "process_labels":
                self._process_labels[lane[0]] = str(values.get("labels"))
        elif phase in ("s", "f"):
            lane = event.get("pid"), event.get("tid")
            if all(isinstance(part, (int, str, type(None))) for part in lane):
                self._flows.append((phase, str(event.get("id")), lane, nanoseconds(event.get("ts"), 0, "ts")))
        elif phase in ("B", "E"):
            raise ValueError("it has begin and end events (ph B and E), which Kineto does not write")

    # -- when all is there ---------------------------------------------------------------------------------------------

    def fill(self, pairs: dict[bytes, int], lanes: dict[bytes, int], rests: dict[bytes, int]) -> None:
        """Pass everything to the builder, and fill in the recording's start and end if the file does not state them."""
        self._pairs = [(parsed[0], _string(parsed[1], "name")) for parsed in map(_loads, _listed(pairs))]
        self._lanes = [(parsed[0], parsed[1]) for parsed in map(_loads, _listed(lanes))]
        for lane in self._lanes:
            if not all(isinstance(part, (int, str, type(None))) for part in lane):
                raise ValueError("pid and tid should be numbers or text in every event")
        columns = self._event_columns(rests)
        instants = {name: parts.take() for name, parts in self._instants.items()}
        names = np.array([(name == "[memory]") + 2 * (name == "[OutOfMemory]") + 3 * (name == "Record Window End")
                          for _, name in self._pairs] or [0], np.int8)[instants.pop("pair")]
        windows = instants["time_ns"][names == 3]
        if len(windows):
            self.end_ns = int(windows[-1])
        memory, failures = ({key: value[names == code] for key, value in instants.items()} for code in (1, 2))
        lane = columns.pop("lane")
        on_device = np.isin(columns["kind"], DEVICE_KINDS)
        used = np.unique(np.concatenate([lane, memory["lane"], failures["lane"]])).tolist()
        threads = self._threads(used, set(np.unique(lane[on_device]).tolist()))
        columns["thread"] = threads[lane]
        del lane, on_device
        for rows in (memory, failures):
            rows["thread"] = threads[rows.pop("lane")]
        self._threads_of_lanes = threads
        times = [column for column in (columns["start_ns"], columns["end_ns"], memory["time_ns"]) if len(column)]
        if self.start_ns is None:
            self.start_ns = min((int(column.min()) for column in times), default=0)
        if self.end_ns is None:
            self.end_ns = max((int(column.max()) for column in times), default=0)
        self.build.add_columns("events", columns)
        if len(memory["time_ns"]) or len(failures["time_ns"]) or self.with_memory:
            for name, rows in (("memory", memory), ("failures", failures)):
                self.build.add_columns(name, {key: self._fitting(name, key, rows[key]) for key in rows
                                              if key in TABLES[name].by_name} if len(rows["time_ns"]) else {})

    def _fitting(self, table: str, name: str, values: np.ndarray) -> np.ndarray:
        column = TABLES[table].by_name[name]
        limits = np.iinfo(column.dtype)
        if len(values) and not limits.min <= int(values.min()) <= int(values.max()) <= limits.max:
            raise ValueError(f"{name} of memory should be an integer of {limits.bits} bits")
        return values

    def _event_columns(self, rests: dict[bytes, int]) -> dict[str, np.ndarray]:
        """The columns of a Trace, with `lane` instead of the thread, and without those that no event states."""
        held = self._columns
        pair, lane = held["pair"].take(), held["lane"].take()
        start, duration = held["start_ns"].take(), held["duration"].take()
        whole = np.array([cat == "Trace" for cat, _ in self._pairs] or [False], bool)
        spans = np.flatnonzero(whole[pair])
        kept: Callable[[np.ndarray], np.ndarray] = lambda values: values
        if len(spans):
            self.start_ns = int(start[spans[-1]])
            rows = np.flatnonzero(~whole[pair])
            kept = lambda values: values[rows]
        pair, lane, start = kept(pair), kept(lane), kept(start)
        end = start + np.maximum(kept(duration), 0)
        del duration
        kinds, engine = self._kinds(np.unique(pair).tolist())
        kind = kinds[pair]
        self._by_process(pair, lane, kind)
        forward = kept(held["forward_thread"].take()) != 0
        of_engine = np.array([called in engine for _, called in self._pairs] or [False], bool)
        kind[(kind == Kind.OP) & (forward | of_engine[pair])] = Kind.BACKWARD_FUNCTION
        del forward
        name = np.array([self.build.name(called) for _, called in self._pairs] or [0], np.int32)[pair]
        step = derived.steps(kind, name, start, end, self.build.names)
        if held["stated_step"].stated:
            stated = kept(held["stated_step"].take())
            step = np.where(stated >= 0, stated, step)
        if held["stated_kind"].stated:
            stated = kept(held["stated_kind"].take())
            if ((stated < -1) | (stated > max(Kind))).any():
                raise ValueError(f"{words.OWN_KIND} should be a number up to {int(max(Kind))}")
            kind = np.where(stated >= 0, stated, kind).astype(np.uint8)
        result = {"name": name, "kind": kind, "start_ns": start, "end_ns": end, "lane": lane, "step": step}
        result |= self._device_columns(pair, lane, kind, kept)
        for column in ("sequence", "correlation", "record_id", "flops", "line"):
            if held[column].stated:
                result[column] = kept(held[column].take())
        if "correlation" not in result and held["connection"].stated:
            result["correlation"] = kept(held["connection"].take())
        result |= self._of_rests(rests, kept(held["rest"].take()), pair)
        if "overload" in result:
            result["name"] = self._without_overloads(result["name"], result["overload"])
        else:
            result |= self._overloads_in_names(pair)
        return result

    def _overloads_in_names(self, pair: np.ndarray) -> dict[str, np.ndarray]:
        """The names of ops and their overloads, from a file of PyTorch that joins them: `aten::add.Tensor`."""
        parts = [_WITH_OVERLOAD.fullmatch(called) if cat == "cpu_op" else None for cat, called in self._pairs]
        if not any(parts):
            return {}
        name = [self.build.name(called if found is None else found[1])
                for (_, called), found in zip(self._pairs, parts, strict=True)]
        overload = [0 if found is None else self.build.name(found[2]) for found in parts]
        return {"name": np.array(name, np.int32)[pair], "overload": np.array(overload, np.int32)[pair]}

    def _without_overloads(self, name: np.ndarray, overload: np.ndarray) -> np.ndarray:
        """The names without the overloads that `capture_overload_names` appends, if the file has both."""
        names = self.build.names
        pairs = np.stack([name, overload])[:, overload > 0]
        for pair in pairs[:, distinct(pairs)[1]].T.tolist():
            ending = f".{names[pair[1]]}"
            if names[pair[0]].endswith(ending):
                shorter = self.build.name(names[pair[0]].removesuffix(ending))
                name = np.where((name == pair[0]) & (overload == pair[1]), shorter, name)
        return name

    def _kinds(self, used: Sequence[int]) -> tuple[np.ndarray, set[str]]:
        """The kind of each pair of category and name, and the names of functions that autograd's engine ran."""
        kinds, engine = np.zeros(max(1, len(self._pairs)), np.uint8), set()
        for number in used:
            cat, called = self._pairs[number]
            kind = words.kind_of(_string(cat, "cat") if cat is not None else "", called)
            if kind is Kind.OTHER:
                self.other_categories[called] = cat or ""
            elif kind is Kind.BACKWARD:
                engine.add(called[len(ENGINE_PREFIX):])
            kinds[number] = kind
        return kinds, engine

    def _by_process(self, pair: np.ndarray, lane: np.ndarray, kind: np.ndarray) -> None:
        """The kind of an event without a category, by its process, as torch_npu names it."""
        bare = np.array([cat is None for cat, _ in self._pairs] or [False], bool)
        if not bare.any():
            return
        rows = np.flatnonzero(bare[pair])
        both, which = np.unique(pair[rows].astype(np.int64) << 32 | lane[rows], return_inverse=True)
        told = [words.kind_in_process(self._process_names.get(self._lanes[code & 0xFFFFFFFF][0], ""),
                                      self._pairs[code >> 32][1]) for code in both.tolist()]
        kind[rows] = np.array(told, np.uint8)[which.reshape(-1)]
        for code, found in zip(both.tolist(), told):
            if found is not Kind.OTHER:
                self.other_categories.pop(self._pairs[code >> 32][1], None)

    def _device_columns(self, pair: np.ndarray, lane: np.ndarray, kind: np.ndarray,
                        kept: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
        held = self._columns
        on_device = np.isin(kind, DEVICE_KINDS)
        gpu_scope = np.array([cat == "gpu_user_annotation" for cat, _ in self._pairs] or [False], bool)[pair]
        stated, index = held["stated_device"].stated, held["stated_device_index"].stated
        if not (stated or index or on_device.any() or gpu_scope.any()):
            return {}
        accelerator = int(words.accelerator({cat or "" for cat, _ in self._pairs}))
        if any(name in words.NPU_PROCESSES for name in self._process_names.values()):
            accelerator = int(DeviceType.PrivateUse1)
        device = np.where(on_device | gpu_scope, accelerator, 0).astype(np.int16)
        if stated:
            told = kept(held["stated_device"].take())
            if wrong := TABLES["events"].by_name["device"].unknown_code(told[told != -1]):
                raise ValueError(f"{words.OWN_DEVICE} {wrong}")
            device = np.where(told >= 0, told, device)
        labels = np.array([self._device_of_process(pid) for pid, _ in self._lanes] or [-1], np.int16)[lane]
        where = kept(held["lane_device"].take())
        on = np.where(where >= 0, where, labels)
        return {"device": device,
                "device_index": np.where(on_device, on, kept(held["stated_device_index"].take()))}

    def _device_of_process(self, pid: Any) -> int:
        """The number of the device that a process stands for, by its label: `NPU 0`; -1 without a label."""
        found = _DEVICE_LABEL.match(self._process_labels.get(pid, ""))
        return int(found[1]) if found else 0 if self._process_names.get(pid) in words.NPU_PROCESSES else -1

    def _of_rests(self, rests: dict[bytes, int], rest: np.ndarray, pair: np.ndarray) -> dict[str, np.ndarray]:
        """The columns from arguments that are not integers, and the rows of side tables."""
        if not rests:
            return {}
        columns: dict[str, list[int]] = {"inputs": [], "stack": [], "overload": [], "module": []}
        sides = SideRows(self.build)
        for number, raw in enumerate(rests):
            values = _loads(raw[:-1], b"{%b}")
            columns["inputs"].append(self._input_number(values))
            columns["stack"].append(self._stated_stack(values))
            for name, key, default in (("overload", words.OWN_OVERLOAD, 0), ("module", words.OWN_MODULE, -1)):
                columns[name].append(self.build.name(_string(values[key], key)) if key in values else default)
            sides.note(number, values)
        result = {}
        for (name, found), default in zip(columns.items(), (-1, -1, 0, -1)):
            if any(value != default for value in found):
                result[name] = np.array([*found, default], np.int32)[rest]
        sides.fill(rest, pair, self._pairs)
        return result

    def _input_number(self, values: dict[str, Any]) -> int:
        if "Input Dims" not in values:
            return -1
        key = orjson.dumps([values.get(k) for k in _INPUT_KEYS])
        found = self._inputs.get(key)
        if found is None:
            own = values.get(words.OWN_INPUTS)
            parsed = words.parse_inputs(values) if own is None else tuple(decode_input(own))
            found = self._inputs[key] = self.build.input(parsed)
        return found

    def _stated_stack(self, values: dict[str, Any]) -> int:
        """A stack that is written out in the file: its number, -1 if the file says nothing, -2 for an explicit
        "none"."""
        line = values.get(words.OWN_STACK)
        if line is None:
            return -1
        if words.OWN_FRAMES in values:
            frames = [Frame(_string(file, "a file"), _line(line), _string(function, "a function"))
                      for file, line, function in values[words.OWN_FRAMES]]
            return self.build.stack(frames)
        return self.build.stack(parse_stack(_string(line, words.OWN_STACK))) if line else -2

    def _threads(self, used: Sequence[int], device_lanes: set[int]) -> np.ndarray:
        """The builder's thread for each lane that is used or named: first those with names, in the file's order."""
        number_of = {lane: number for number, lane in enumerate(self._lanes)}
        for lane in self._thread_names:
            if lane not in number_of:
                number_of[lane] = len(self._lanes)
                self._lanes.append(lane)
        self._number_of_lane = number_of
        result = np.full(len(self._lanes) + 1, -1, np.int32)
        for number in [*(number_of[lane] for lane in self._thread_names), *used]:
            if result[number] < 0:
                result[number] = self.build.thread(self._thread_info(self._lanes[number], number in device_lanes))
        return result

    def _thread_info(self, lane: tuple[Any, Any], on_device: bool) -> ThreadInfo:
        pid, tid = lane
        name = self._thread_names.get(lane, "")
        if _STREAM_NAME.match(name):
            name = name[:-1]
        found = None if on_device else _THREAD_NAME.match(name)
        if found and found[1] == str(tid):
            name = found[2] or ""
        return ThreadInfo(words.identity(pid), words.identity(tid), name or (tid if isinstance(tid, str) else ""),
                          self._process_names.get(pid, "python"))

    def linked(self, trace: Trace) -> Trace:
        """The trace with device work linked to the ops from which torch_npu draws its arrows."""
        flows = [(phase, key, self._number_of_lane[lane], time) for phase, key, lane, time in self._flows
                 if self._threads_of_lanes[self._number_of_lane.get(lane, -1)] >= 0]
        if not flows or not len(trace):
            return trace
        numbers: dict[str, int] = {}
        identity = np.array([numbers.setdefault(key, len(numbers) + 1) for _, key, _, _ in flows], np.int64)
        thread = self._threads_of_lanes[np.array([lane for _, _, lane, _ in flows])]
        rows = rows_around(trace.events, thread, np.array([time for *_, time in flows], np.int64))
        correlation = np.zeros(len(trace), np.int64)
        correlation[rows[rows >= 0]] = identity[rows >= 0]
        return trace.with_columns("events", correlation=correlation)


def _listed(known: dict[bytes, int]) -> list[bytes]:
    return [b"[%b]" % key for key in known]


def _loads(raw: bytes, form: bytes = b"%b") -> Any:
    """Decode a piece of the file. Bytes that are not UTF-8 are replaced, because PyTorch copies names unchecked."""
    content = form % raw
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return orjson.loads(content.decode("utf-8", "replace"))


def _string(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} should be a string, and is a {type(value).__name__}")
    return value


def _line(value: Any) -> int:
    if not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise ValueError("the line of a frame should be an integer")
    return value
