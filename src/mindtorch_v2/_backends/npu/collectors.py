"""The sources of times of device work: the simulator's log, msPTI's records, or pairs of events.

`MINDTORCH_NPU_COLLECTOR` chooses one by name (`simulator`, `mspti`, `events`); otherwise the best available one is
used. All of them state for each piece of work which call of the runtime queued it.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .clocks import Comparison, to_host
from .errors import AclError
from .library import WATCH, Library, library
from .runtime import THREAD
from .stream import Event, stream_of

KERNEL, COPY, FILL = 1, 2, 3
# Directions of copies in traces (`mtprof.schema.Direction`), by the runtime's number of the kind.
DIRECTIONS = {0: 1, 1: 2, 2: 3, 3: 4, 6: 4, 7: 5}

_lock = threading.Lock()
# Above this, numbers need more than 16 bits: Holistic Trace Analysis narrows the column and puts row numbers into it.
_numbers = itertools.count(1 << 16)
_last = [0]


def next_number() -> int:
    """A number for a call of the runtime, unique in the process."""
    number = _last[0] = next(_numbers)
    return number


def last_number() -> int:
    """The number that was given last."""
    return _last[0]


@dataclass
class Work:
    """Work of devices, as columns; times are on the host's clock."""

    kind: np.ndarray
    name: np.ndarray  # texts
    device: np.ndarray
    stream: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    correlation: np.ndarray
    size_bytes: np.ndarray
    direction: np.ndarray

    def after(self, number: int) -> Work:
        """The work queued by calls after a number."""
        return self.where(self.correlation > number)

    def where(self, kept: np.ndarray) -> Work:
        """The work for which a mask is true."""
        return Work(*[getattr(self, column.name)[kept] for column in fields(Work)])

    def __len__(self) -> int:
        return len(self.kind)


def joined(parts: list[Work]) -> Work:
    """Parts one after another."""
    return Work(*[np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Work)])


def work_of(rows: list[tuple[Any, ...]]) -> Work:
    """Columns of rows in the order of the fields."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 9
    names = np.empty(len(rows), object)
    names[:] = columns[1]
    return Work(*[names if i == 1 else np.array(column, np.int64) for i, column in enumerate(columns)])


class Collector:
    """How work is collected."""

    name = ""

    def start(self) -> None:
        """Begin."""

    def before(self, name: str, number: int, arguments: tuple[Any, ...]) -> Any:
        """Before a call of the runtime; its result is passed to `after`."""

    def after(self, name: str, number: int, arguments: tuple[Any, ...], before: Any, code: int) -> None:
        """After the call."""

    def collect(self, comparisons: dict[int, list[Comparison]]) -> Work:
        """The work since the last time; all queued work is done."""
        raise NotImplementedError(type(self).__name__)

    def stop(self) -> None:
        """End."""


# Calls that queue one task each, and the position of the stream among their arguments.
QUEUES = {"aclrtMemcpyAsync": 5, "aclrtMemsetAsync": 4, "aclrtRecordEvent": 1, "aclrtStreamWaitEvent": 0}


def stream_argument(name: str) -> int | None:
    """The position of the stream in a call that queues a task; None for other calls."""
    if name in QUEUES:
        return QUEUES[name]
    return 3 if name.startswith("aclnn") and not name.endswith("GetWorkspaceSize") else None


# -- the simulator's log -----------------------------------------------------------------------------------------------


class SimulatedActivity(ctypes.Structure):
    """An entry of the simulator's log; times are ticks of its device's counter."""

    _fields_ = [("kind", ctypes.c_uint32), ("device", ctypes.c_uint32), ("stream", ctypes.c_int32),
                ("copy_kind", ctypes.c_int32), ("correlation", ctypes.c_uint64), ("submit", ctypes.c_uint64),
                ("start", ctypes.c_uint64), ("end", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("operations", ctypes.c_uint64), ("name", ctypes.c_char_p), ("type", ctypes.c_char_p)]


TICK_NS = 20
SIM_EVENT, SIM_WAIT, SIM_FAILED = 4, 5, 6


class SimulatorCollector(Collector):
    """Reads the simulator's log. Tasks of a stream come in the order in which they were queued. So the n-th entry of a
    stream belongs to the n-th call that queued something there.
    """

    name = "simulator"

    def __init__(self, opened: Library) -> None:
        self._enable = opened.symbol("mtsimActivityEnable", ctypes.c_int, ctypes.c_int)
        self._read = opened.symbol("mtsimActivityRead", ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
        self._queued: dict[int, list[int]] = {}  # numbers of calls, by the stream's address
        self._ids: dict[int, int] = {}

    def start(self) -> None:
        self._queued.clear()
        self._enable(1)

    def after(self, name: str, number: int, arguments: tuple[Any, ...], before: Any, code: int) -> None:
        place = stream_argument(name)
        if place is None or code:
            return
        stream = arguments[place]
        with _lock:
            self._queued.setdefault(stream, []).append(number)
            if stream not in self._ids:
                self._ids[stream] = stream_of(THREAD.bound).stream_id if stream == stream_of(
                    THREAD.bound).npu_stream else _stream_id(stream)

    def collect(self, comparisons: dict[int, list[Comparison]]) -> Work:
        by_stream: dict[int, list[SimulatedActivity]] = {}
        for entry in self._take():
            by_stream.setdefault(entry.stream, []).append(entry)
        rows: list[tuple[Any, ...]] = []
        times: list[tuple[int, int]] = []
        with _lock:
            for address, numbers in self._queued.items():
                found = by_stream.pop(self._ids[address], [])
                # Tasks of an abandoned stream have no entry.
                for entry, number in zip(found, numbers, strict=False):
                    if entry.kind in (SIM_EVENT, SIM_WAIT, SIM_FAILED):
                        continue
                    rows.append((entry.kind, entry.name.decode(), entry.device, entry.stream, 0, 0, number,
                                 entry.bytes if entry.kind != KERNEL else 0,
                                 DIRECTIONS.get(entry.copy_kind, 0) if entry.kind == COPY else 0))
                    times.append((entry.start * TICK_NS, entry.end * TICK_NS))
                del numbers[:len(found)]
        return place_on_host(work_of(rows), np.array(times, np.int64).reshape(-1, 2), comparisons)

    def stop(self) -> None:
        self._enable(0)
        self._take()  # what came after the last look belongs to nobody

    def _take(self) -> list[SimulatedActivity]:
        """All entries, which are removed from the log."""
        count = self._read(None, 0)
        entries = (SimulatedActivity * max(count, 1))()
        # By reference: an object passed only as an address is freed before the call if nothing else holds it.
        return entries[:self._read(ctypes.byref(entries), count)]


def _stream_id(address: int) -> int:
    number = ctypes.c_int32()
    library().raw("aclrtStreamGetId")(address, ctypes.byref(number))
    return number.value


def place_on_host(work: Work, times: np.ndarray, comparisons: dict[int, list[Comparison]]) -> Work:
    """Convert start times; durations stay those of the device, to the nanosecond.

    A device with a faster clock would seem to start work before the last work of its stream has ended, by some
    billionths: such work is moved behind it. Work of a device whose clock was never read has no place.
    """
    known = np.isin(work.device, [index for index, ones in comparisons.items() if ones])
    work, times = work.where(known), times[known]
    for index in np.unique(work.device).tolist():
        for stream in np.unique(work.stream[work.device == index]).tolist():
            rows = np.flatnonzero((work.device == index) & (work.stream == stream))
            rows = rows[np.argsort(times[rows, 0], kind="stable")]
            duration = times[rows, 1] - times[rows, 0]
            before = np.cumsum(duration) - duration
            start = before + np.maximum.accumulate(to_host(times[rows, 0], comparisons[index]) - before)
            work.start_ns[rows] = start
            work.end_ns[rows] = start + duration
    return work


# -- pairs of events ---------------------------------------------------------------------------------------------------


class EventCollector(Collector):
    """Records an event before and after each task. This works everywhere; if a stream idles between the two, the work
    looks longer than it was.
    """

    name = "events"

    def __init__(self) -> None:
        self._pairs: list[tuple[str, int, int, Any, Event, Event, int, int]] = []

    def before(self, name: str, number: int, arguments: tuple[Any, ...]) -> Any:
        place = stream_argument(name)
        if place is None or name in ("aclrtRecordEvent", "aclrtStreamWaitEvent"):
            return None
        stream = stream_of(THREAD.bound)
        if stream.npu_stream != arguments[place]:
            return None
        return stream, _recorded(stream)

    def after(self, name: str, number: int, arguments: tuple[Any, ...], before: Any, code: int) -> None:
        if before is None or code:
            return
        stream, begin = before
        end = _recorded(stream)
        kind = COPY if name == "aclrtMemcpyAsync" else FILL if name == "aclrtMemsetAsync" else KERNEL
        size = arguments[3] if kind != KERNEL else 0
        way = DIRECTIONS.get(arguments[4], 0) if kind == COPY else 0
        title = {COPY: "Memcpy", FILL: "Memset"}.get(kind, name.removeprefix("aclnn"))
        with _lock:
            self._pairs.append((title, kind, number, stream, begin, end, size, way))

    def collect(self, comparisons: dict[int, list[Comparison]]) -> Work:
        with _lock:
            pairs, self._pairs = self._pairs, []
        rows, times = [], []
        for title, kind, number, stream, begin, end, size, way in pairs:
            try:
                start = begin.recorded_time() * 1000
                times.append((start, start + max(round(begin.elapsed_time(end) * 1e6), 0)))
            except AclError:
                continue  # the device was lost before it was done; the log says so
            rows.append((kind, title, stream.device_index, stream.stream_id, 0, 0, number, size, way))
        return place_on_host(work_of(rows), np.array(times, np.int64).reshape(-1, 2), comparisons)


def _recorded(stream: Any) -> Event:
    """Record an event on a stream, without recording it as a call."""
    event = Event(enable_timing=True)
    watch, WATCH[0] = WATCH[0], None
    try:
        event.record(stream)
    finally:
        WATCH[0] = watch
    return event


# -- msPTI -------------------------------------------------------------------------------------------------------------

PTI_KERNEL, PTI_EXTERNAL = 2, 8
PTI_SIZES = {1: 56, 2: 56, 3: 48, 4: 56, 5: 64, 6: 56, 7: 56, 8: 24, 9: 72, 10: 48, 11: 48, 12: 48}
CUSTOM = 2  # the kind of external numbers that we push
BUFFER_BYTES = 8 << 20
KERNEL_RECORD = np.dtype({"names": ["start", "end", "device", "stream", "correlation", "name"],
                          "formats": ["<u8", "<u8", "<u4", "<u4", "<u8", "<u8"],
                          "offsets": [4, 12, 20, 24, 28, 44], "itemsize": 56})
EXTERNAL_RECORD = np.dtype({"names": ["kind", "external", "correlation"], "formats": ["<u4", "<u8", "<u8"],
                            "offsets": [4, 8, 16], "itemsize": 24})


class MsptiCollector(Collector):
    """Records of CANN's tools library: kernels with their own times, on the clock of the day.

    The library links work to calls by a stack of numbers that is shared by the process, whatever its documents say. So
    calls that queue kernels are made one at a time while this collector runs. Copies and fills have no device times
    there; events give them.
    """

    name = "mspti"

    def __init__(self, opened: Library) -> None:
        self._opened = opened
        self._handle = ctypes.c_void_p()
        self._full: list[tuple[Any, int]] = []
        self._given: dict[int, Any] = {}
        self._call = threading.Lock()
        self._copies = EventCollector()
        request = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                                   ctypes.POINTER(ctypes.c_size_t))
        done = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
        # Kept here: C calls them from threads of its own.
        self._callbacks = (request(self._request), done(self._done))
        self._clocks: list[tuple[int, int]] = []

    def _request(self, place: Any, size: Any, most: Any) -> None:
        buffer = (ctypes.c_uint64 * (BUFFER_BYTES // 8))()
        address = ctypes.addressof(buffer)
        self._given[address] = buffer
        place[0], size[0], most[0] = address, BUFFER_BYTES, 0

    def _done(self, address: int, size: int, valid: int) -> None:
        buffer = self._given.pop(address, None)
        if buffer is not None and valid:
            self._full.append((buffer, valid))

    def _check(self, name: str, *arguments: Any) -> None:
        code = self._opened.raw(name)(*arguments)
        if code:
            raise RuntimeError(f"{name} returned {code}" + {2: ": another tool is subscribed already",
                                                              6: ": libmspti.so is not preloaded"}.get(code, ""))

    def start(self) -> None:
        self._clocks = [_day_and_host()]
        self._check("msptiSubscribe", ctypes.byref(self._handle), None, None)
        self._check("msptiActivityRegisterCallbacks", *[ctypes.cast(c, ctypes.c_void_p) for c in self._callbacks])
        for kind in (PTI_KERNEL, PTI_EXTERNAL):
            self._check("msptiActivityEnable", kind)

    def before(self, name: str, number: int, arguments: tuple[Any, ...]) -> Any:
        if name in ("aclrtMemcpyAsync", "aclrtMemsetAsync"):
            return self._copies.before(name, number, arguments)
        if stream_argument(name) is None or name in QUEUES:
            return None
        self._call.acquire()
        self._opened.raw("msptiActivityPushExternalCorrelationId")(CUSTOM, number)
        return True

    def after(self, name: str, number: int, arguments: tuple[Any, ...], before: Any, code: int) -> None:
        if before is True:
            last = ctypes.c_uint64()
            self._opened.raw("msptiActivityPopExternalCorrelationId")(CUSTOM, ctypes.byref(last))
            self._call.release()
        elif before is not None:
            self._copies.after(name, number, arguments, before, code)

    def collect(self, comparisons: dict[int, list[Comparison]]) -> Work:
        self._flush()
        self._clocks = [self._clocks[0], _day_and_host()]
        kernels, external = [], []
        for buffer, valid in self._full:
            data = bytes(memoryview(buffer).cast("B")[:valid])
            for kind, part in records(data):
                if kind == PTI_KERNEL:
                    kernels.append(part)
                elif kind == PTI_EXTERNAL:
                    external.append(part)
        self._full.clear()
        made = self._kernels(np.frombuffer(b"".join(kernels), KERNEL_RECORD),
                             np.frombuffer(b"".join(external), EXTERNAL_RECORD))
        return joined([made, self._copies.collect(comparisons)])

    def _flush(self) -> None:
        """Records arrive from a thread of the library, some time after the work."""
        quiet = 0
        for _ in range(40):
            before = len(self._full)
            self._opened.raw("msptiActivityFlushAll")(1)
            quiet = quiet + 1 if len(self._full) == before else 0
            if quiet >= 2:
                return
            time.sleep(0.005)

    def _kernels(self, kernels: np.ndarray, external: np.ndarray) -> Work:
        numbers = dict(zip(external["correlation"].tolist(), external["external"].tolist(), strict=True))
        names: dict[int, str] = {}
        for address in np.unique(kernels["name"]).tolist():
            names[address] = (ctypes.string_at(address) if address else b"").decode(errors="replace")
        rows = [(KERNEL, names[name], device, stream, start, end, numbers.get(correlation, 0), 0, 0)
                for start, end, device, stream, correlation, name in zip(
                    *[kernels[field].tolist() for field in ("start", "end", "device", "stream", "correlation",
                                                            "name")], strict=True)]
        work = work_of(rows)
        (day0, host0), (day1, host1) = self._clocks[0], self._clocks[-1]
        drift = (host1 - host0 - (day1 - day0)) / (day1 - day0) if day1 > day0 else 0.0
        duration = work.end_ns - work.start_ns
        since = work.start_ns - day0
        work.start_ns = host0 + since + np.rint(since * drift).astype(np.int64)
        work.end_ns = work.start_ns + duration
        return work

    def stop(self) -> None:
        for kind in (PTI_KERNEL, PTI_EXTERNAL):
            self._opened.raw("msptiActivityDisable")(kind)
        self._opened.raw("msptiUnsubscribe")(self._handle)
        self._opened.raw("msptiActivityFlushAll")(1)
        self._full.clear()


def records(data: bytes) -> Any:
    """The records of a buffer, walked by their sizes: the library's own iterator loses its position."""
    place = 0
    while place + 4 <= len(data):
        kind = int.from_bytes(data[place:place + 4], "little")
        size = PTI_SIZES.get(kind)
        if size is None:
            return  # a kind of a newer library: nothing after it can be found
        yield kind, data[place:place + size]
        place += size


def _day_and_host() -> tuple[int, int]:
    """The clock of the day and that of profiles, read together; the closest of some tries."""
    best = None
    for _ in range(5):
        before, day, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        if best is None or after - before < best[0]:
            best = (after - before, day, (before + after) // 2)
    assert best is not None
    return best[1], best[2]


def choose() -> Collector:
    """The collector that the environment names, or the best one available."""
    opened = library()
    wanted = os.environ.get("MINDTORCH_NPU_COLLECTOR", "")
    if wanted not in ("", "simulator", "mspti", "events"):
        raise ValueError(f"MINDTORCH_NPU_COLLECTOR is {wanted!r}; it may be simulator, mspti or events")
    if wanted == "simulator" or (not wanted and opened.simulated):
        return SimulatorCollector(opened)
    if wanted == "mspti" or (not wanted and opened.has("msptiSubscribe")):
        return MsptiCollector(opened)
    return EventCollector()
