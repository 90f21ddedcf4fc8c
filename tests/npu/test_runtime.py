"""The rules of the runtime that the simulator enforces: a binding that breaks one must fail here, not on hardware."""

from __future__ import annotations

import ctypes as c
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from acl import D2D, D2H, H2D, H2H, SYNC, TIME_LINE, Acl, AclError, Buffer, Scalar

from mindtorch_v2._backends.npu.sim import build

HERE = Path(__file__).parent
SLOW = b"910b,hbm_gbs=1e-3,start_us=0"  # 1 byte per µs: 4 kB of traffic last 4 ms
HOUR = b"910b,kernel_us=3600000000,start_us=0"  # longer than a test waits on any machine


def in_child(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with `acl` opened."""
    start = f"import ctypes as c, os, sys\nimport numpy as np\nfrom acl import *\nacl = Acl({str(build.library())!r})\n"
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-c", start + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def event(acl: Acl, flags: int = SYNC | TIME_LINE) -> c.c_void_p:
    return acl.handle("aclrtCreateEventExWithFlag", c.c_uint32(flags))


def test_it_says_that_it_is_a_simulator(acl: Acl) -> None:
    assert b"simulator" in acl.lib.aclrtGetSocName()
    assert acl.lib.aclrtGetSocName().startswith(b"Ascend910B")
    assert b"simulator" in acl.lib.mtsimBanner()
    version = c.create_string_buffer(128 + 4 * 64 + 128)
    acl.call("aclsysGetCANNVersion", 0, version)
    assert b"simulator" in version.raw


# -- process, devices, threads -----------------------------------------------------------------------------------------


def test_initialisation(simulator: str) -> None:
    acl = Acl(simulator)
    assert acl.code("aclrtSetDevice", 0) == 100001
    count = c.c_uint32()
    acl.call("aclrtGetDeviceCount", c.byref(count))  # before aclInit
    acl.call("aclInit", None)
    assert acl.code("aclInit", None) == 100002
    acl.call("aclFinalize")
    assert acl.code("aclFinalize") == 100037


def test_a_thread_needs_a_device(acl: Acl) -> None:
    codes: list[int] = []

    def other() -> None:
        pointer, device = c.c_void_p(), c.c_int32()
        codes.append(acl.code("aclrtMalloc", c.byref(pointer), 64, 0))
        codes.append(acl.code("aclrtGetDevice", c.byref(device)))
        codes.append(acl.code("aclrtSynchronizeDevice"))
        acl.call("aclrtSetDevice", 1)
        acl.call("aclrtGetDevice", c.byref(device))
        codes.append(device.value)
        acl.call("aclrtResetDevice", 1)
        codes.append(acl.code("aclrtSynchronizeDevice"))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert codes == [107002, 107002, 107002, 1, 107002]


def test_devices(acl: Acl) -> None:
    assert acl.code("aclrtSetDevice", 2) == 107001
    assert acl.code("aclrtSetDevice", -1) == 107001
    value = c.c_int64()
    acl.call("aclGetDeviceCapability", 0, 0, c.byref(value))
    assert value.value == 24
    free, total = c.c_size_t(), c.c_size_t()
    acl.call("aclrtGetMemInfo", 1, c.byref(free), c.byref(total))
    assert (free.value, total.value) == (256 << 20, 256 << 20)
    pointer = acl.malloc(1 << 20)
    acl.call("aclrtGetMemInfo", 1, c.byref(free), c.byref(total))
    assert total.value - free.value == (1 << 20) + 32
    acl.call("aclrtFree", pointer)
    acl.call("aclrtGetMemInfo", 0, c.byref(free), c.byref(total))
    assert total.value == 0  # DDR: a training card has none


@pytest.mark.parametrize(("listed", "count"), [("0,2", 2), ("", 0), ("2,1", 0), ("0,1,7", 2), ("0;1", 1)])
def test_visible_devices(simulator: str, listed: str, count: int) -> None:
    done = in_child(
        "n = c.c_uint32()\nacl.lib.aclrtGetDeviceCount(c.byref(n))\nprint(n.value)",
        MINDTORCH_NPU_SIM_DEVICES="3",
        ASCEND_RT_VISIBLE_DEVICES=listed,
    )
    assert done.stdout.strip() == str(count), done.stderr


def test_error_text_belongs_to_the_thread_and_is_cleared(acl: Acl) -> None:
    assert acl.raw("aclrtFree", None) == 100000
    seen: list[object] = []
    thread = threading.Thread(target=lambda: seen.append(acl.lib.aclGetRecentErrMsg()))
    thread.start()
    thread.join()
    assert seen == [None]
    assert b"NULL" in acl.lib.aclGetRecentErrMsg()
    assert acl.lib.aclGetRecentErrMsg() is None


def test_fork_after_initialisation(simulator: str) -> None:
    done = in_child(
        "acl.call('aclInit', None); acl.call('aclrtSetDevice', 0)\n"
        "p = acl.malloc(64)\npid = os.fork()\n"
        "if pid == 0:\n    print(acl.raw('aclrtSynchronizeDevice'), acl.text(), acl.raw('aclrtFree', p), flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\nacl.call('aclrtSynchronizeDevice'); print('parent', flush=True)"
    )
    assert done.stdout.startswith("507899 "), done.stderr
    assert "spawn" in done.stdout
    assert "parent" in done.stdout, done.stderr


def test_reset_ends_streams_and_frees_memory(acl: Acl) -> None:
    acl.call("aclrtSetDevice", 1)
    stream, pointer = acl.handle("aclrtCreateStream"), acl.malloc(4096)
    acl.call("aclrtResetDevice", 1)
    acl.call("aclrtSetDevice", 1)
    assert acl.code("aclrtSynchronizeStream", stream) == 107003
    assert acl.code("aclrtFree", pointer) == 107000
    acl.call("aclrtResetDevice", 1)
    acl.call("aclrtSetDevice", 0)


def test_stream_of_another_device(acl: Acl) -> None:
    stream = acl.handle("aclrtCreateStream")
    acl.call("aclrtSetDevice", 1)
    assert acl.code("aclrtSynchronizeStream", stream) == 107003
    acl.call("aclrtResetDevice", 1)
    acl.call("aclrtSetDevice", 0)
    acl.call("aclrtDestroyStream", stream)
    assert acl.code("aclrtSynchronizeStream", stream) == 107003


# -- memory ------------------------------------------------------------------------------------------------------------


def test_malloc_and_free(acl: Acl) -> None:
    pointer = c.c_void_p()
    assert acl.code("aclrtMalloc", c.byref(pointer), 0, 0) == 100000
    assert acl.code("aclrtFree", None) == 100000
    one, two = acl.malloc(1), acl.malloc(100)
    assert one % 64 == 0
    assert two % 64 == 0
    assert one != two
    assert acl.code("aclrtFree", two + 64) == 107000
    acl.call("aclrtFree", two)
    assert acl.code("aclrtFree", two) == 107000
    host = np.zeros(4)
    assert acl.code("aclrtFree", host.ctypes.data) == 107000
    acl.call("aclrtFree", one)
    assert acl.lib.mtsimLiveBlocks(0, None) == 0


def test_memory_limit(acl: Acl) -> None:
    held = [acl.malloc(64 << 20) for _ in range(3)]
    pointer = c.c_void_p()
    assert acl.code("aclrtMalloc", c.byref(pointer), 64 << 20, 0) == 207001
    acl.call("aclrtFree", held.pop())
    held.append(acl.malloc(64 << 20))
    assert acl.code("aclrtMalloc", c.byref(pointer), 1 << 62, 0) == 207001
    for block in held:
        acl.call("aclrtFree", block)


def test_host_and_device_addresses_are_told_apart(acl: Acl) -> None:
    host, device = np.zeros(16, "f4"), acl.malloc(64)
    for to, source, kind in [
        (host.ctypes.data, device, H2D),
        (device, host.ctypes.data, D2H),
        (device, host.ctypes.data, D2D),
        (device, device, H2H),
        (host.ctypes.data, host.ctypes.data, D2D),
    ]:
        assert acl.code("aclrtMemcpy", to, 64, source, 64, kind) == 107000
    assert acl.code("aclrtMemset", host.ctypes.data, 64, 0, 64) == 107000
    acl.call("aclrtMemcpy", device, 64, host.ctypes.data, 64, 4)  # the kind that is inferred
    assert acl.code("aclrtMemcpy", device, 32, host.ctypes.data, 64, H2D) == 100000
    big = np.zeros(64, "f4")
    assert acl.code("aclrtMemcpy", device, 256, big.ctypes.data, 256, H2D) == 107000
    buffer = acl.buffer(host)
    buffer.pointer = host.ctypes.data // 32 * 32
    with pytest.raises(AclError, match="host address") as caught:
        acl.op("InplaceZero", buffer)
    assert caught.value.code == 161002


def test_the_host_cannot_read_device_memory(simulator: str) -> None:
    done = in_child("acl.call('aclInit', None); acl.call('aclrtSetDevice', 0)\nprint(c.string_at(acl.malloc(64), 4))")
    assert done.returncode == -11, done.stdout


def test_guard_behind_a_block(acl: Acl) -> None:
    """Bytes up to ALIGN_UP(n, 32) + 32 may be touched; those after it are guarded."""
    block = acl.malloc(100)
    for inside in (99, 100, 128, 159):
        acl.call("mtsimPoke", block + inside, 1)
    acl.call("aclrtSynchronizeDevice")
    acl.call("mtsimPoke", block + 160, 1)
    with pytest.raises(AclError, match="behind the end of the block") as caught:
        acl.call("aclrtSynchronizeDevice")
    assert caught.value.code == 507899
    assert acl.code("aclrtFree", block) == 507899  # told, and freed
    acl.call("aclrtSynchronizeDevice")


def test_kernels_write_the_padding_behind_their_output(acl: Acl) -> None:
    """With MINDTORCH_NPU_SIM_TAIL=1 they use all the bytes that they may, and no more."""
    buffer = acl.buffer(np.zeros(20, "f4"))
    acl.op("InplaceOne", buffer)
    acl.call("aclrtSynchronizeDevice")
    assert buffer.numpy().tolist() == [1] * 20


def test_a_sub_allocator_without_padding_loses_data(acl: Acl) -> None:
    """Two tensors packed too tightly into one block: a kernel writes the tail of the first, and the second shows it."""
    block = acl.malloc(4096)
    first, second = acl.buffer(np.zeros(8, "f4")), acl.buffer(np.zeros(8, "f4"))
    for buffer, at in ((first, 0), (second, 32)):
        acl.call("aclrtFree", buffer.pointer)
        buffer.pointer = block + at
    acl.op("InplaceZero", second)
    acl.op("InplaceOne", first)
    assert first.numpy().tolist() == [1] * 8
    assert second.numpy().any()


def test_new_memory_is_not_zero(acl: Acl) -> None:
    read = np.zeros(8, "u1")
    block = acl.malloc(8)
    acl.call("aclrtMemcpy", read.ctypes.data, 8, block, 8, D2H)
    assert (read == 0xCB).all()
    acl.call("aclrtFree", block)


def test_memory_freed_while_queued_work_needs_it(acl: Acl) -> None:
    acl.call("mtsimConfigure", b"model", SLOW)
    buffer, stream = acl.buffer(np.zeros(1024, "f4")), acl.handle("aclrtCreateStream")
    gate, other = event(acl, SYNC), acl.handle("aclrtCreateStream")
    blocker = acl.buffer(np.zeros(1 << 20, "f4"))
    for _ in range(20):
        acl.op("InplaceOne", blocker, stream=other)
    acl.call("aclrtRecordEvent", gate, other)
    acl.call("aclrtStreamWaitEvent", stream, gate)
    acl.op("InplaceOne", buffer, stream=stream)
    acl.call("aclrtFree", buffer.pointer)
    acl.call("mtsimConfigure", b"model", b"zero")
    with pytest.raises(AclError, match="freed before the kernel ran") as caught:
        acl.call("aclrtSynchronizeStream", stream)
    assert caught.value.code == 507015
    acl.call("aclrtDestroyStreamForce", other)
    acl.call("aclrtDestroyEvent", gate)


def test_pinned_memory(acl: Acl) -> None:
    pinned = acl.handle("aclrtMallocHost", 4096)
    assert (pinned.value or 1) % 64 == 0
    acl.call("aclrtFreeHost", pinned)
    assert acl.code("aclrtFreeHost", pinned) == 107000
    array = np.zeros(16)
    device = c.c_void_p()
    acl.call("aclrtHostRegister", c.c_void_p(array.ctypes.data), c.c_uint64(array.nbytes), 0, c.byref(device))
    acl.call("aclrtHostUnregister", c.c_void_p(array.ctypes.data))
    assert acl.code("aclrtHostUnregister", c.c_void_p(array.ctypes.data)) == 107000


def test_copies_between_devices(acl: Acl) -> None:
    x = np.arange(8, dtype="f4")
    here = acl.buffer(x)
    acl.call("aclrtSetDevice", 1)
    there = acl.buffer(np.zeros(8, "f4"))
    assert acl.code("aclrtMemcpy", there.pointer, 32, here.pointer, 32, D2D) == 107000  # no peer access yet
    with pytest.raises(AclError, match="on device 0, the stream on device 1"):
        acl.op("InplaceCopy", there, here)
    can = c.c_int32()
    acl.call("aclrtDeviceCanAccessPeer", c.byref(can), 1, 0)
    assert can.value == 1
    acl.call("aclrtDeviceEnablePeerAccess", 0, c.c_uint32(0))
    acl.call("aclrtMemcpy", there.pointer, 32, here.pointer, 32, D2D)
    np.testing.assert_array_equal(there.numpy(), x)
    acl.call("aclrtResetDevice", 1)
    acl.call("aclrtSetDevice", 0)


# -- streams and events ------------------------------------------------------------------------------------------------


def test_work_is_asynchronous(acl: Acl) -> None:
    """Pinned copies and kernels return before they have run; pageable copies and synchronisation wait."""
    stream, buffer = acl.handle("aclrtCreateStream"), acl.buffer(np.zeros(16, "f4"))
    pinned, host, status = acl.handle("aclrtMallocHost", 64), np.zeros(16, "f4"), c.c_int32()

    def under_way() -> bool:
        acl.call("aclrtStreamQuery", stream, c.byref(status))
        return status.value == 1

    acl.call("mtsimConfigure", b"model", b"910b,kernel_us=5000,start_us=0")
    acl.op("InplaceOne", buffer, stream=stream)
    acl.call("aclrtSynchronizeStream", stream)
    assert not under_way()
    acl.op("InplaceOne", buffer, stream=stream)
    acl.call("aclrtMemcpyAsync", c.c_void_p(host.ctypes.data), 64, buffer.pointer, 64, D2H, stream)
    assert not under_way()
    assert host.tolist() == [1] * 16
    acl.call("mtsimConfigure", b"model", HOUR)
    acl.op("InplaceOne", buffer, stream=stream)
    acl.call("aclrtMemcpyAsync", pinned, 64, buffer.pointer, 64, D2H, stream)
    assert under_way()
    assert acl.code("aclrtSynchronizeStreamWithTimeout", stream, 1) == 507046
    acl.call("aclrtDestroyStreamForce", stream)
    acl.call("aclrtFreeHost", pinned)


def test_elapsed_time(acl: Acl) -> None:
    acl.call("mtsimConfigure", b"model", b"910b,kernel_us=100,event_us=0")
    buffer, start, end = acl.buffer(np.zeros(4, "f4")), event(acl), event(acl)
    elapsed, stamp, begun = c.c_float(), c.c_uint64(), c.c_uint64()
    assert acl.code("aclrtEventElapsedTime", c.byref(elapsed), start, end) == 507000
    acl.call("aclrtRecordEvent", start, None)
    for _ in range(3):
        acl.op("InplaceOne", buffer)
    acl.call("aclrtRecordEvent", end, None)
    acl.call("aclrtSynchronizeEvent", end)
    acl.call("aclrtEventElapsedTime", c.byref(elapsed), start, end)
    acl.call("aclrtEventGetTimestamp", start, c.byref(begun))
    acl.call("aclrtEventGetTimestamp", end, c.byref(stamp))
    assert elapsed.value >= 0.3
    assert elapsed.value == pytest.approx((stamp.value - begun.value) / 1000, abs=0.0021, rel=1e-6)
    assert stamp.value > 86_000 * 1_000_000  # since the device's boot, not the host's
    plain = event(acl, SYNC)
    acl.call("aclrtRecordEvent", plain, None)
    acl.call("aclrtSynchronizeEvent", plain)
    assert acl.code("aclrtEventElapsedTime", c.byref(elapsed), start, plain) == 107006
    for handle in (start, end, plain):
        acl.call("aclrtDestroyEvent", handle)
    assert acl.code("aclrtRecordEvent", start, None) == 107000


def test_kinds_of_events(acl: Acl) -> None:
    status = c.c_int32(7)
    extended, old = event(acl), acl.handle("aclrtCreateEventWithFlag", c.c_uint32(SYNC | TIME_LINE))
    acl.call("aclrtQueryEventStatus", extended, c.byref(status))
    assert status.value == 1  # complete before the first record
    for name in ("aclrtQueryEvent", "aclrtQueryEventWaitStatus"):
        assert acl.code(name, extended, c.byref(status)) == 107000
        acl.call(name, old, c.byref(status))
        assert status.value == 0  # the opposite number
    assert acl.code("aclrtResetEvent", extended, None) == 107000
    acl.call("aclrtResetEvent", old, None)
    timing = event(acl, TIME_LINE)
    acl.call("aclrtRecordEvent", timing, None)
    assert acl.code("aclrtStreamWaitEvent", None, timing) == 107000
    assert acl.code("aclrtCreateEventExWithFlag", c.byref(c.c_void_p()), c.c_uint32(0)) == 100000
    for handle in (extended, old, timing):
        acl.call("aclrtDestroyEvent", handle)


def test_a_wait_for_another_device_ends_when_that_is_done(acl: Acl) -> None:
    """Devices' clocks have nothing in common: the wait ends at the same moment, not at the same count."""
    acl.call("aclrtSetDevice", 1)
    gate = event(acl)
    acl.call("aclrtRecordEvent", gate, None)
    acl.call("aclrtSetDevice", 0)
    acl.call("aclrtStreamWaitEvent", None, gate)
    acl.call("aclrtSynchronizeDeviceWithTimeout", 60_000)
    acl.call("aclrtDestroyEvent", gate)


def test_a_wait_takes_the_record_of_its_moment(acl: Acl) -> None:
    """An event recorded again after the wait was queued does not hold the waiting stream up."""
    acl.call("mtsimConfigure", b"model", b"zero,kernel_us=5000")
    one, two, gate = acl.handle("aclrtCreateStream"), acl.handle("aclrtCreateStream"), event(acl)
    buffer = acl.buffer(np.zeros(4, "f4"))
    acl.lib.mtsimActivityEnable(1)
    acl.op("InplaceOne", buffer, stream=one)
    acl.call("aclrtRecordEvent", gate, one)
    acl.call("aclrtStreamWaitEvent", two, gate)
    acl.call("aclrtDestroyEvent", gate)  # queued work keeps what it needs
    acl.op("InplaceZero", buffer, stream=two)
    acl.call("aclrtSynchronizeDevice")
    kernels = [entry for entry in acl.activities() if entry.kind == 1]
    assert kernels[1].start >= kernels[0].end
    assert not buffer.numpy().any()
    for stream in (one, two):
        acl.call("aclrtDestroyStream", stream)


def test_two_streams_overlap(acl: Acl) -> None:
    acl.call("mtsimConfigure", b"model", HOUR)
    streams = [acl.handle("aclrtCreateStream") for _ in range(2)]
    buffers = [acl.buffer(np.zeros(4, "f4")) for _ in streams]
    acl.lib.mtsimActivityEnable(1)
    for _ in range(3):
        for stream, buffer in zip(streams, buffers):
            acl.op("InplaceAdds", buffer, Scalar(1), Scalar(1), stream=stream)
    lanes: dict[int, list[tuple[int, int]]] = {}
    while sum(map(len, lanes.values())) < 6:  # the host computes at once, and the log says when the device does
        for entry in acl.activities():
            if entry.kind == 1:
                lanes.setdefault(entry.stream, []).append((entry.start, entry.end))
    for stream in streams:
        acl.call("aclrtDestroyStreamForce", stream)
    first, second = lanes.values()
    assert len(first) == len(second) == 3
    for lane in (first, second):
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(lane))
    assert max(first[0][0], second[0][0]) < min(first[-1][1], second[-1][1])
    acl.call("mtsimConfigure", b"model", b"zero")
    assert [buffer.numpy().tolist() for buffer in buffers] == [[3] * 4] * 2


def test_the_clock_drifts(acl: Acl) -> None:
    acl.call("mtsimConfigure", b"model", b"zero,drift_ppm=2000")

    def readings(device: int) -> tuple[int, int, int]:
        return time.monotonic_ns(), acl.lib.mtsimDeviceTicks(device) * 20, time.monotonic_ns()

    for device, rate in ((0, 1.002), (1, 1.002007)):
        begun = readings(device)
        time.sleep(0.2)
        ended = readings(device)
        # What passed on the device is between what passed at least and at most on the host, to a tick.
        least, most = ended[0] - begun[2], ended[2] - begun[0]
        assert least * rate - 40 <= ended[1] - begun[1] <= most * rate + 40
    assert acl.lib.mtsimDeviceTicks(1) - acl.lib.mtsimDeviceTicks(0) > 1e9  # each has its own zero
    before, ticks, after = readings(0)
    assert before - 40 <= acl.lib.mtsimTicksToMonotonic(0, c.c_uint64(ticks // 20)) <= after + 40


def test_event_times_are_causal(acl: Acl) -> None:
    """What calibration relies on: an event on an idle stream is stamped between its record and its synchronisation."""
    acl.call("mtsimConfigure", b"model", b"910b")
    mark, stamp = event(acl), c.c_uint64()
    for _ in range(20):
        before = acl.lib.mtsimDeviceTicks(0)
        acl.call("aclrtRecordEvent", mark, None)
        acl.call("aclrtSynchronizeEvent", mark)
        after = acl.lib.mtsimDeviceTicks(0)
        acl.call("aclrtEventGetTimestamp", mark, c.byref(stamp))
        assert before // 50 <= stamp.value <= after // 50
    acl.call("aclrtDestroyEvent", mark)


# -- operators: executors and descriptors ------------------------------------------------------------------------------


def plan(acl: Acl, buffer: Buffer) -> tuple[c.c_void_p, c.c_void_p]:
    tensor, size, executor = c.c_void_p(buffer.tensor()), c.c_uint64(), c.c_void_p()
    acl.call("aclnnInplaceOneGetWorkspaceSize", tensor, c.byref(size), c.byref(executor))
    return tensor, executor


@pytest.mark.parametrize(
    ("last", "text"),
    [
        ("acl.raw('aclnnInplaceOne', None, c.c_uint64(0), e, None)", "second use"),
        ("acl.raw('aclDestroyAclOpExecutor', e)", "phase 2 deletes it"),
        ("acl.raw('aclDestroyTensor', t); acl.raw('aclDestroyTensor', t)", "destroyed twice"),
        (
            "m = (c.c_void_p * 1)(t.value); l = c.c_void_p(acl.lib.aclCreateTensorList(m, c.c_uint64(1))); "
            "acl.raw('aclDestroyTensorList', l); "
            "acl.raw('aclDestroyTensor', t)",
            "member of a list",
        ),
    ],
)
def test_misuse_of_handles_aborts(simulator: str, last: str, text: str) -> None:
    done = in_child(
        "acl.call('aclInit', None); acl.call('aclrtSetDevice', 0)\nb = acl.buffer(np.zeros(4, 'f4'))\n"
        "t, s, e = c.c_void_p(b.tensor()), c.c_uint64(), c.c_void_p()\n"
        "acl.call('aclnnInplaceOneGetWorkspaceSize', t, c.byref(s), c.byref(e))\n"
        "acl.call('aclnnInplaceOne', None, s, e, None)\n" + last
    )
    assert done.returncode == -6, done.stderr
    assert text in done.stderr


def test_executors(acl: Acl) -> None:
    buffer = acl.buffer(np.zeros(4, "f4"))
    tensor, executor = plan(acl, buffer)
    acl.call("aclDestroyAclOpExecutor", executor)  # phase 2 was never called
    assert acl.code("aclnnInplaceOne", None, c.c_uint64(0), None, None) == 561103
    executor = c.c_void_p()
    acl.call("aclnnInplaceOneGetWorkspaceSize", tensor, c.byref(c.c_uint64()), c.byref(executor))
    assert (
        acl.code("aclnnInplaceZero", None, c.c_uint64(0), executor, None) == 161002
    )  # of another operator, and deleted with that
    assert acl.lib.mtsimLiveHandles(11) == 0
    acl.call("aclnnInplaceOneGetWorkspaceSize", tensor, c.byref(c.c_uint64()), c.byref(executor))
    acl.call("aclDestroyTensor", tensor)
    assert acl.code("aclnnInplaceOne", None, c.c_uint64(0), executor, None) == 161002  # its tensor must live until here


def test_repeatable_executor(acl: Acl) -> None:
    first, second = acl.buffer(np.zeros(4, "f4")), acl.buffer(np.zeros(4, "f4"))
    tensor, executor = plan(acl, first)
    acl.call("aclSetAclOpExecutorRepeatable", executor)
    acl.call("aclnnInplaceOne", None, c.c_uint64(0), executor, None)
    acl.call("aclSetOutputTensorAddr", executor, c.c_size_t(0), tensor, c.c_void_p(second.pointer))
    acl.call("aclnnInplaceOne", None, c.c_uint64(0), executor, None)
    acl.call("aclDestroyAclOpExecutor", executor)
    acl.call("aclDestroyTensor", tensor)
    assert first.numpy().tolist() == second.numpy().tolist() == [1] * 4


def test_swapped_offset_and_format(acl: Acl) -> None:
    pointer = acl.malloc(64)
    dims = (c.c_int64 * 2)(4, 4)

    def create(offset: int, form: int) -> int | None:
        made = acl.lib.aclCreateTensor(
            dims, c.c_uint64(2), 0, None, c.c_int64(offset), form, dims, c.c_uint64(2), c.c_void_p(pointer)
        )
        if made:
            acl.call("aclDestroyTensor", c.c_void_p(made))
        return made

    assert create(0, 2)
    assert create(2, 0) is None
    assert "swapped" in acl.text()
    assert create(2, 2) is None
    assert "swapped" in acl.text()
    assert create(0, 99) is None
    assert acl.text()


def test_descriptors(acl: Acl) -> None:
    buffer = acl.buffer(np.zeros((3, 4), "f4"), shape=(2, 3), strides=(4, 1), offset=2)
    tensor = c.c_void_p(buffer.tensor())
    dims, count, number, kind = c.POINTER(c.c_int64)(), c.c_uint64(), c.c_int64(), c.c_int32()
    for name, expected in (("aclGetViewShape", [2, 3]), ("aclGetViewStrides", [4, 1]), ("aclGetStorageShape", [12])):
        acl.call(name, tensor, c.byref(dims), c.byref(count))
        assert dims[: count.value] == expected
    acl.call("aclGetViewOffset", tensor, c.byref(number))
    acl.call("aclGetDataType", tensor, c.byref(kind))
    assert (number.value, kind.value) == (2, 0)
    address = c.c_void_p()
    acl.call("aclGetRawTensorAddr", tensor, c.byref(address))
    assert address.value == buffer.pointer
    acl.call("aclSetRawTensorAddr", tensor, c.c_void_p(buffer.pointer + 32))
    members = (c.c_void_p * 1)(tensor)
    listed = c.c_void_p(acl.create("aclCreateTensorList", members, c.c_uint64(1)))
    acl.call("aclGetTensorListSize", listed, c.byref(count))
    assert count.value == 1
    acl.call("aclDestroyTensorList", listed)  # the tensor with it
    for name in ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList"):
        acl.call(f"aclDestroy{name}", None)


def test_unaligned_and_shared_outputs(acl: Acl) -> None:
    buffer = acl.buffer(np.zeros(32, "f4"))
    buffer.pointer += 4
    buffer.storage = buffer.storage[:31]
    buffer.shape = (31,)
    with pytest.raises(AclError, match="aligned"):
        acl.op("InplaceOne", buffer)
    shared = acl.buffer(np.zeros(4, "f4"), shape=(3, 4), strides=(0, 1))
    with pytest.raises(AclError, match="share memory"):
        acl.op("InplaceOne", shared)


# -- faults ------------------------------------------------------------------------------------------------------------


def test_injected_faults(acl: Acl) -> None:
    pointer, x = c.c_void_p(), np.zeros(4, "f4")
    acl.call("mtsimConfigure", b"faults", b"malloc:2,memcpy:1,event:3")
    acl.call("aclrtMalloc", c.byref(pointer), 64, 0)
    assert acl.code("aclrtMalloc", c.byref(c.c_void_p()), 64, 0) == 207001
    assert acl.code("aclrtMemcpy", pointer.value, 16, x.ctypes.data, 16, H2D) == 507000
    acl.call("aclrtMemcpy", pointer.value, 16, x.ctypes.data, 16, H2D)
    mark = event(acl)
    acl.call("aclrtRecordEvent", mark, None)
    assert acl.code("aclrtRecordEvent", mark, None) == 507000
    acl.call("aclrtDestroyEvent", mark)
    assert acl.code("mtsimConfigure", b"faults", b"teapot:1") == 100000
    assert acl.code("mtsimConfigure", b"nothing", b"1") == 100000


def test_kernel_fault_shows_at_synchronisation(acl: Acl) -> None:
    buffer = acl.buffer(np.zeros(4, "f4"))
    acl.call("mtsimConfigure", b"faults", b"kernel:2")
    acl.op("InplaceAdds", buffer, Scalar(1), Scalar(1))
    acl.op("InplaceAdds", buffer, Scalar(10), Scalar(1))  # fails on the device, not here
    acl.op("InplaceAdds", buffer, Scalar(100), Scalar(1))
    assert acl.code("aclrtSynchronizeStream", None) == 507015
    np.testing.assert_array_equal(buffer.numpy(), [101] * 4)
    acl.call("mtsimConfigure", b"faults", b"launch:1")
    assert acl.code("aclrtMemsetAsync", buffer.pointer, 16, 0, 16, None) == 507000


def test_device_lost(acl: Acl) -> None:
    buffer = acl.buffer(np.zeros(4, "f4"))
    acl.call("mtsimConfigure", b"faults", b"lost:3")
    mark = event(acl)
    for _ in range(3):
        acl.op("InplaceOne", buffer)
    assert acl.code("aclrtSynchronizeStream", None) == 507899
    assert acl.code("aclrtMalloc", c.byref(c.c_void_p()), 64, 0) == 507899
    assert acl.code("aclrtRecordEvent", mark, None) == 507899
    with pytest.raises(AclError):
        acl.op("InplaceOne", buffer)
    assert acl.code("aclrtSetDevice", 0) == 507899
    acl.call("aclrtSetDevice", 1)  # the others go on
    acl.call("aclrtResetDevice", 1)
    acl.call("mtsimConfigure", b"faults", b"")
    acl.call("aclrtDestroyEvent", mark)
    acl.call("aclrtResetDeviceForce", 0)
    acl.call("aclrtSetDevice", 0)  # back after a reset


def test_bad_settings_are_told(simulator: str) -> None:
    for name, value in (
        ("MODEL", "fast"),
        ("FAULTS", "malloc"),
        ("MEMORY", "lots"),
        ("DEVICES", "many"),
        ("MODEL", "/does/not/exist"),
    ):
        done = in_child("print(acl.raw('aclInit', None), acl.text())", **{f"MINDTORCH_NPU_SIM_{name}": value})
        assert done.stdout.startswith("100000 "), (name, done.stdout, done.stderr)
        assert value in done.stdout


# -- the model and the log ---------------------------------------------------------------------------------------------


def test_the_model_gives_durations(acl: Acl) -> None:
    acl.call("mtsimConfigure", b"model", b"zero,hbm_gbs=1,kernel_us=2")
    buffer = acl.buffer(np.zeros(10_000, "f4"))
    acl.lib.mtsimActivityEnable(1)
    acl.op("InplaceOne", buffer)
    acl.call("aclrtSynchronizeDevice")
    acl.call("mtsimConfigure", b"model", b"zero,cube_float_tflops=1e-3")
    x = acl.buffer(np.zeros((100, 100), "f4"))
    acl.op("Mm", x, x, acl.empty((100, 100), "float32"), c.c_int8(0))
    acl.call("aclrtSynchronizeDevice")
    fill, product = [entry for entry in acl.activities() if entry.kind == 1]
    assert (fill.end - fill.start) * 20 == 2_000 + 40_000  # 40,000 bytes at 1 byte per ns
    assert product.operations == 2_000_000
    assert (product.end - product.start) * 20 == 2_000_000  # at 1 operation per ns


def test_model_from_a_file(simulator: str, tmp_path: Path) -> None:
    model = tmp_path / "slow.model"
    model.write_text("zero  # to start from\nkernel_us=123\n")
    done = in_child(
        "acl.call('aclInit', None); acl.call('aclrtSetDevice', 0)\nb = acl.buffer(np.zeros(4, 'f4'))\n"
        "acl.lib.mtsimActivityEnable(1)\n"
        "acl.op('InplaceOne', b); acl.call('aclrtSynchronizeDevice')\n"
        "print([(e.end - e.start) * 20 for e in acl.activities()])",
        MINDTORCH_NPU_SIM_MODEL=str(model),
    )
    assert done.stdout.strip() == "[123000]", done.stderr


def test_log_file_agrees_with_the_log_in_memory(simulator: str, tmp_path: Path) -> None:
    done = in_child(
        "import json\nacl.call('aclInit', None); acl.call('aclrtSetDevice', 0)\nacl.lib.mtsimActivityEnable(1)\n"
        "b = acl.buffer(np.zeros(400, 'f4'))\n"
        "for _ in range(5): acl.op('InplaceAdds', b, Scalar(1), Scalar(1))\nb.numpy()\n"
        "acl.call('aclrtMemset', b.pointer, 64, 1, 64)\n"
        "print(json.dumps([[e.kind, e.name.decode(), e.stream, e.start, e.end, e.bytes] for e in acl.activities()]))",
        MINDTORCH_NPU_SIM_LOG=str(tmp_path / "{pid}.jsonl"),
    )
    memory = json.loads(done.stdout)
    (file,) = tmp_path.glob("*.jsonl")
    head, *lines = map(json.loads, file.read_text().splitlines())
    assert "simulator" in head["simulator"]
    assert head["tick_ns"] == 20
    kinds = {"kernel": 1, "memcpy": 2, "memset": 3, "event": 4, "wait": 5}
    assert memory == [
        [kinds[line["kind"]], line["name"], line["stream"], line["start"], line["end"], line["bytes"]] for line in lines
    ]
    assert [entry[0] for entry in memory] == [2, 1, 1, 1, 1, 1, 2, 3]
    assert sum(1 for entry in memory if entry[1] == "aclnnInplaceAdds_InplaceAddsAiCore_InplaceAdds") == 5


def test_many_threads(acl: Acl) -> None:
    """Threads with streams of their own, all on one device."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            acl.call("aclrtSetDevice", 0)
            stream, mark = acl.handle("aclrtCreateStream"), event(acl)
            buffer = acl.buffer(np.zeros(64, "f4"))
            for _ in range(50):
                acl.op("InplaceAdds", buffer, Scalar(number), Scalar(1), stream=stream)
            acl.call("aclrtRecordEvent", mark, stream)
            acl.call("aclrtSynchronizeEvent", mark)
            assert buffer.numpy().tolist() == [50 * number] * 64
            acl.call("aclrtDestroyEvent", mark)
            acl.call("aclrtDestroyStream", stream)
            acl.call("aclrtFree", buffer.pointer)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert acl.lib.mtsimLiveBlocks(0, None) == 0


def test_nothing_leaks_over_many_steps(acl: Acl) -> None:
    buffer = acl.buffer(np.zeros((8, 8), "f4"))
    out = acl.empty((8, 8), "float32")
    blocks = acl.lib.mtsimLiveBlocks(0, None)
    handles = [acl.lib.mtsimLiveHandles(kind) for kind in range(1, 12)]
    for _ in range(1000):
        acl.op("Mm", buffer, buffer, out, c.c_int8(0))
        acl.op("InplaceAdd", buffer, out, Scalar(0.5))
    acl.call("aclrtSynchronizeDevice")
    assert acl.lib.mtsimLiveBlocks(0, None) == blocks
    assert [acl.lib.mtsimLiveHandles(kind) for kind in range(1, 12)] == handles
