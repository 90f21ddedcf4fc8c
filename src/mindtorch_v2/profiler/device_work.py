"""Converts a device's log to rows of a trace: calls of its runtime, kernels, copies, memory, comparisons of clocks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mtprof.builder import TraceBuilder
from mtprof.own_metadata import DEVICE_TIMES
from mtprof.schema import Kind
from mtprof.trace import ThreadInfo

from .._backends.base import Device, device_named
from .._device import device

# By the numbers of `_backends/npu/collectors.py`.
KINDS = np.array([0, Kind.KERNEL, Kind.COPY, Kind.FILL], np.uint8)
Threads = Callable[[np.ndarray, np.ndarray], np.ndarray]  # from idents and times to threads of the trace


def add_device_work(build: TraceBuilder, taken: Any, device_type: int, label: str, threads: Threads,
                    steps_ns: np.ndarray) -> None:
    """Add what one device logged during one stretch of a recording."""
    _add_calls(build, taken.calls, threads, steps_ns)
    _add_work(build, taken.work, device_type, label, steps_ns)
    _add_clocks(build, taken.comparisons, device_type)
    _add_memory(build, taken, device_type, threads)


def _add_calls(build: TraceBuilder, calls: list[Any], threads: Threads, steps_ns: np.ndarray) -> None:
    if not calls:
        return
    names, *numbers = zip(*calls, strict=True)
    start, end, ident, correlation = (np.array(column, np.int64) for column in numbers)
    build.add_columns("events", {
        "name": np.array([build.name(name) for name in names], np.int32),
        "kind": np.full(len(start), Kind.LAUNCH, np.uint8), "start_ns": start, "end_ns": end,
        "thread": threads(ident, start), "correlation": correlation,
        "step": np.searchsorted(steps_ns, start, "right").astype(np.int32),
    })


def _add_work(build: TraceBuilder, work: Any, device_type: int, label: str, steps_ns: np.ndarray) -> None:
    build.add_columns("copies", {})
    if not len(work):
        return
    lanes = {(device, stream): build.thread(ThreadInfo(device, stream, f"stream {stream}", f"{label} {device}"))
             for device, stream in zip(work.device.tolist(), work.stream.tolist(), strict=True)}
    first = build.count("events")
    build.add_columns("events", {
        "name": np.array([build.name(name) for name in work.name.tolist()], np.int32),
        "kind": KINDS[work.kind], "start_ns": work.start_ns, "end_ns": work.end_ns,
        "thread": np.array([lanes[key] for key in zip(work.device.tolist(), work.stream.tolist(), strict=True)],
                           np.int32),
        "device": np.full(len(work), device_type, np.int16), "device_index": work.device.astype(np.int16),
        "correlation": work.correlation,
        "step": np.searchsorted(steps_ns, work.start_ns, "right").astype(np.int32),
    })
    moved = np.flatnonzero(KINDS[work.kind] != Kind.KERNEL)
    if len(moved):
        build.add_columns("copies", {"row": (moved + first).astype(np.int32), "size_bytes": work.size_bytes[moved],
                                     "direction": work.direction[moved].astype(np.uint8)})


def _add_clocks(build: TraceBuilder, comparisons: dict[int, list[Any]], device_type: int) -> None:
    rows = [(one.host_ns, one.device_ns, one.error_ns, index) for index, ones in comparisons.items() for one in ones]
    if rows:
        host, device, error, index = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        build.add_columns("clocks", {"time_ns": host, "device_ns": device, "error_ns": error,
                                     "device": np.full(len(rows), device_type, np.int16),
                                     "device_index": index.astype(np.int16)})


def _add_memory(build: TraceBuilder, taken: Any, device_type: int, threads: Threads) -> None:
    if taken.memory:
        time, ident, address, size, total, reserved, index = (np.array(column, np.int64)
                                                              for column in zip(*taken.memory, strict=True))
        build.add_columns("memory", {
            "time_ns": time, "thread": threads(ident, time), "size_bytes": size, "address": address,
            "total_bytes": total, "reserved_bytes": reserved,
            "device": np.full(len(time), device_type, np.int16), "device_index": index.astype(np.int16)})
    if taken.failures:
        time, ident, size, total, reserved, index = (np.array(column, np.int64)
                                                     for column in zip(*taken.failures, strict=True))
        build.add_columns("failures", {
            "time_ns": time, "thread": threads(ident, time), "size_bytes": size, "total_bytes": total,
            "reserved_bytes": reserved, "device": np.full(len(time), device_type, np.int16),
            "device_index": index.astype(np.int16)})


class DeviceWatch:
    """The logs of devices during a recording, over its parts: of the devices that keep a log (`Device.activities`); of
    memory only if requested.
    """

    def __init__(self, types: tuple[str, ...], memory: bool) -> None:
        self.memory = memory
        self._devices = [device_named(device(kind)) for kind in types]
        self._marks: list[Any] = []
        self.taken: list[tuple[Device, Any]] = []

    def start(self) -> None:
        """Begin, or begin again after a pause."""
        if not self._marks:
            self._marks = [one.activities().start(self.memory) for one in self._devices]

    def stop(self) -> None:
        """Wait for queued work and collect it; may be called when nothing runs."""
        marks, self._marks = self._marks, []
        for one, mark in zip(self._devices, marks, strict=False):
            self.taken.append((one, one.activities().stop(mark, self.memory)))

    def add_to(self, build: TraceBuilder, threads: Threads, steps_ns: np.ndarray) -> None:
        """Add everything that was logged to a trace."""
        for one, taken in self.taken:
            add_device_work(build, taken, one.profiler_type, one.profiler_name, threads, steps_ns)

    def metadata(self) -> dict[str, Any]:
        """The facts about the devices in the trace's metadata."""
        return {DEVICE_TIMES: [facts_of(taken, one.profiler_name) for one, taken in self.taken]} if self.taken else {}


def facts_of(taken: Any, label: str) -> dict[str, Any]:
    """The facts about one device: the source of its times, and their accuracy."""
    error = max((one.error_ns for ones in taken.comparisons.values() for one in ones), default=0)
    facts: dict[str, Any] = {"device": label, "simulator": taken.simulated, "times_from": taken.source,
                             "clock_error_ns": error, "pid": os.getpid()}
    if taken.problem:
        facts["problem"] = taken.problem
    return facts
