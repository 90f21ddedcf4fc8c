"""msPTI on the simulator: records, and the quirks of the library that a profiler must handle."""

from __future__ import annotations

import ctypes as c
import struct
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from acl import Acl, Scalar

REQUEST = c.CFUNCTYPE(None, c.POINTER(c.c_void_p), c.POINTER(c.c_size_t), c.POINTER(c.c_size_t))
DONE = c.CFUNCTYPE(None, c.c_void_p, c.c_size_t, c.c_size_t)
MARKER, KERNEL, API, MEMORY, MEMSET, MEMCPY, EXTERNAL, ACL_API = 1, 2, 3, 5, 6, 7, 8, 10
LAYOUTS = {
    MARKER: ("<IIIQQIIQQ4x", 56),
    KERNEL: ("<IQQIIQQQ4x", 56),
    API: ("<IQQIIQQ4x", 48),
    ACL_API: ("<IQQIIQQ4x", 48),
    MEMORY: ("<IIIQQQQQIII", 64),
    MEMSET: ("<IIQQQIIQB7x", 56),
    MEMCPY: ("<IIQQQIIQB7x", 56),
    EXTERNAL: ("<IIQQ", 24),
}


class Collector:
    """A client of msPTI that walks the buffers itself."""

    def __init__(self, acl: Acl, size: int = 1 << 20) -> None:
        self.acl, self.size = acl, size
        self.buffers: dict[int, object] = {}
        self.records: list[tuple] = []
        self.threads: set[int] = set()
        self.keep = (REQUEST(self.request), DONE(self.done))
        self.handle = c.c_void_p()
        assert acl.lib.msptiSubscribe(c.byref(self.handle), None, None) == 0
        assert acl.lib.msptiActivityRegisterCallbacks(*self.keep) == 0

    def request(self, buffer: object, size: object, most: object) -> None:
        memory = (c.c_uint64 * (self.size // 8))()
        self.buffers[c.addressof(memory)] = memory
        buffer[0], size[0], most[0] = c.addressof(memory), self.size, 0

    def done(self, buffer: int, size: int, valid: int) -> None:
        self.threads.add(threading.get_ident())
        data, at = c.string_at(buffer, valid), 0
        while at < valid:
            layout, length = LAYOUTS[struct.unpack_from("<I", data, at)[0]]
            assert struct.calcsize(layout) == length
            self.records.append(struct.unpack_from(layout, data, at))
            at += length
        del self.buffers[buffer]

    def of(self, kind: int) -> list[tuple]:
        return [record for record in self.records if record[0] == kind]

    def close(self) -> None:
        assert self.acl.lib.msptiUnsubscribe(self.handle) == 0
        self.acl.lib.msptiActivityFlushAll(1)


@pytest.fixture
def collector(acl: Acl) -> Iterator[Collector]:
    acl.call("mtsimConfigure", b"preload", b"0")
    made = Collector(acl)
    yield made
    made.close()
    acl.lib.msptiActivityRegisterCallbacks(*made.keep)


def text(pointer: int) -> str:
    return c.string_at(pointer).decode()


def test_kernels(acl: Acl, collector: Collector) -> None:
    acl.call("mtsimConfigure", b"model", b"910b")
    for kind in (KERNEL, ACL_API, EXTERNAL):
        assert acl.lib.msptiActivityEnable(kind) == 0
    acl.lib.mtsimActivityEnable(1)
    buffer, stream = acl.buffer(np.zeros(1000, "f4")), acl.handle("aclrtCreateStream")
    before = time.time_ns()
    for number in range(6):
        acl.lib.msptiActivityPushExternalCorrelationId(3, c.c_uint64(100 + number))
        acl.op("InplaceAdds", buffer, Scalar(1), Scalar(1), stream=stream)
        last = c.c_uint64()
        assert acl.lib.msptiActivityPopExternalCorrelationId(3, c.byref(last)) == 0
        assert last.value == 100 + number
    acl.call("aclrtSynchronizeStream", stream)
    after = time.time_ns()
    acl.lib.msptiActivityFlushAll(1)
    kernels, calls, external = collector.of(KERNEL), collector.of(ACL_API), collector.of(EXTERNAL)
    assert len(kernels) == len(calls) == len(external) == 6
    log = [entry for entry in acl.activities() if entry.kind == 1]
    identifier = c.c_int32()
    acl.call("aclrtStreamGetId", stream, c.byref(identifier))
    for kernel, entry in zip(kernels, log):
        assert kernel[2] - kernel[1] == (entry.end - entry.start) * 20  # to the nanosecond
        assert kernel[4] == entry.stream == identifier.value
        assert text(kernel[7]) == entry.name.decode()
        assert text(kernel[6]) == "KERNEL_AIVEC"
        assert before - 1_000_000 < kernel[1] < kernel[2] < after + 1_000_000
    assert [text(call[6]) for call in calls] == ["aclnnInplaceAdds"] * 6
    assert [kernel[5] for kernel in kernels] == [call[5] for call in calls] == [record[3] for record in external]
    assert [record[2] for record in external] == list(range(100, 106))
    assert all(call[4] == threading.get_native_id() for call in calls)
    assert collector.threads == {threading.get_ident()}  # FlushAll hands over on the caller's thread
    acl.call("aclrtDestroyStream", stream)


def test_buffers_are_handed_over_at_80_percent_by_another_thread(acl: Acl, collector: Collector) -> None:
    collector.size = 560  # ten kernel records; eight reach 80 %
    acl.lib.msptiActivityEnable(KERNEL)
    buffer = acl.buffer(np.zeros(4, "f4"))
    for _ in range(8):
        acl.op("InplaceOne", buffer)
    acl.call("aclrtSynchronizeDevice")
    deadline = time.time() + 10
    while not collector.records and time.time() < deadline:
        time.sleep(0.005)
    assert len(collector.records) == 8
    assert threading.get_ident() not in collector.threads
    collector.size = 24  # no kernel record fits
    dropped = acl.lib.mtsimMsptiDropped()
    acl.op("InplaceOne", buffer)
    acl.call("aclrtSynchronizeDevice")
    assert acl.lib.mtsimMsptiDropped() == dropped + 1


def test_iterator_position_belongs_to_the_thread(acl: Acl, collector: Collector) -> None:
    data = bytearray()
    for number in range(3):
        data += struct.pack("<IIQQ", EXTERNAL, 3, number, 0)
    raw = (c.c_char * len(data)).from_buffer(data)
    record = c.c_void_p()

    def following() -> int:
        code = acl.lib.msptiActivityGetNextRecord(raw, c.c_size_t(len(data)), c.byref(record))
        return struct.unpack("<Q", c.string_at(record.value + 8, 8))[0] if code == 0 else -code

    assert following() == 0
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.extend(following() for _ in range(4)))
    thread.start()
    thread.join()
    assert seen == [0, 1, 2, -3]
    assert [following(), following(), following(), following()] == [1, 2, -3, 0]
    assert [following(), following(), following()] == [1, 2, -3]


def test_rules(acl: Acl, collector: Collector) -> None:
    second = c.c_void_p()
    assert acl.lib.msptiSubscribe(c.byref(second), None, None) == 2
    for kind in (MEMORY, MEMSET, MEMCPY):
        assert acl.lib.msptiActivityEnable(kind) == 6
    assert acl.lib.msptiActivityEnable(0) == acl.lib.msptiActivityEnable(13) == 1
    assert acl.lib.msptiActivityPopExternalCorrelationId(2, None) == 1
    assert acl.lib.msptiActivityPopExternalCorrelationId(2, c.byref(c.c_uint64())) == 5
    assert acl.lib.msptiEnableDomain(1, collector.handle, 1) == 6


def test_external_ids_are_shared_by_threads(acl: Acl, collector: Collector) -> None:
    """The process has one stack: ids pushed by another thread belong to this thread's launches too."""
    for kind in (KERNEL, EXTERNAL):
        acl.lib.msptiActivityEnable(kind)
    thread = threading.Thread(target=lambda: acl.lib.msptiActivityPushExternalCorrelationId(3, c.c_uint64(77)))
    thread.start()
    thread.join()
    buffer = acl.buffer(np.zeros(4, "f4"))
    acl.op("InplaceOne", buffer)
    acl.call("aclrtSynchronizeDevice")
    acl.lib.msptiActivityFlushAll(1)
    assert [record[2] for record in collector.of(EXTERNAL)] == [77]
    acl.lib.msptiActivityPopExternalCorrelationId(3, c.byref(c.c_uint64()))


def test_memory_records_when_preloaded(acl: Acl, collector: Collector) -> None:
    acl.call("mtsimConfigure", b"preload", b"1")
    for kind in (MEMORY, MEMSET, MEMCPY):
        assert acl.lib.msptiActivityEnable(kind) == 0
    buffer = acl.buffer(np.zeros(16, "f4"))
    acl.call("aclrtMemset", buffer.pointer, 64, 3, 64)
    buffer.numpy()
    acl.call("aclrtFree", buffer.pointer)
    acl.lib.msptiActivityFlushAll(1)
    assert [(record[1], record[6], record[7]) for record in collector.of(MEMORY)] == [
        (0, buffer.pointer, 64),
        (1, buffer.pointer, 64),
    ]
    assert [(record[1], record[2]) for record in collector.of(MEMCPY)] == [(2, 64), (3, 64)]
    assert [(record[1], record[2]) for record in collector.of(MEMSET)] == [(3, 64)]
    acl.call("mtsimConfigure", b"preload", b"0")


def test_marks_and_ranges(acl: Acl, collector: Collector) -> None:
    acl.call("mtsimConfigure", b"model", b"zero,kernel_us=500")
    acl.lib.msptiActivityEnable(MARKER)
    acl.lib.mstxRangeStartA.restype = c.c_uint64
    buffer, stream = acl.buffer(np.zeros(4, "f4")), acl.handle("aclrtCreateStream")
    number = acl.lib.mstxRangeStartA(b"step", stream)
    assert number
    acl.op("InplaceOne", buffer, stream=stream)
    acl.lib.mstxRangeEnd(c.c_uint64(number))
    acl.lib.mstxMarkA(b"here", None)
    acl.call("aclrtSynchronizeStream", stream)
    acl.lib.msptiActivityFlushAll(1)
    found = {(record[1], record[2]): record for record in collector.of(MARKER)}
    assert set(found) == {(2, 0), (4, 0), (1, 0), (16, 1), (32, 1)}
    assert text(found[2, 0][7]) == text(found[16, 1][7]) == "step"
    assert text(found[32, 1][7]) == ""
    assert found[32, 1][3] - found[16, 1][3] >= 500_000
    acl.call("aclrtDestroyStream", stream)
