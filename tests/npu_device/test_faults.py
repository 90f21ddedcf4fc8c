"""Faults: each gives a clear error, never a crash or a wrong value; the recording so far survives."""

from __future__ import annotations

from typing import Any

import pytest

from length import LONG

START = "import mindtorch_v2 as torch\n"


def fails(done: Any, *words: str) -> None:
    text = done.stdout + done.stderr
    assert done.returncode == 1, (done.returncode, text)
    for word in words:
        assert word in text, (word, text)


def test_no_library(program: Any) -> None:
    done = program(START + "print(torch.npu.is_available())\nprint(torch.npu.unavailable_reason())\n"
                   "torch.ones(1).npu()", MINDTORCH_NPU="ascend", ASCEND_HOME_PATH="/nowhere")
    fails(done, "False", "No NPU is available: CANN's libraries cannot be opened")


def test_a_choice_that_does_not_exist(program: Any) -> None:
    fails(program(START + "print(torch.npu.is_available()); torch.npu.init()", MINDTORCH_NPU="gpu"),
          "MINDTORCH_NPU is 'gpu'; it may be ascend, sim, off")


def test_a_library_of_another_version(program: Any, tmp_path: Any) -> None:
    """A library that lacks some functions, as an older one does."""
    import subprocess

    folder = tmp_path / "lib64"
    folder.mkdir()
    source = tmp_path / "old.c"
    source.write_text("int aclInit(const char *path) { return 0; }\n")
    for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so"):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(folder / name), str(source)], check=True)
    done = program(START + "print(torch.npu.unavailable_reason()); torch.npu.init()", MINDTORCH_NPU="ascend",
                   ASCEND_HOME_PATH=str(tmp_path))
    fails(done, "aclFinalize is in none of the NPU libraries at", "a version that this runtime does not know")


def test_no_device(program: Any) -> None:
    fails(program(START + "print(torch.npu.device_count()); torch.ones(1, device='npu')",
                  MINDTORCH_NPU_SIM_DEVICES="0"), "0\n", "the runtime finds no device")
    fails(program(START + "print(torch.npu.device_count()); torch.ones(1, device='npu')",
                  ASCEND_RT_VISIBLE_DEVICES="1,0"), "0\n", "ASCEND_RT_VISIBLE_DEVICES='1,0'")


def test_a_kernel_error_is_reported_at_a_later_synchronize(program: Any) -> None:
    done = program(START + """
x = torch.ones(4, device="npu")
torch.npu.synchronize()
y = x
for _ in range(3):
    y = y + x
print("queued")
try:
    torch.npu.synchronize()
except torch.AcceleratorError as error:
    print("caught", error.error_code, error)
""", MINDTORCH_NPU_SIM_FAULTS="kernel:3")
    assert done.returncode == 0, done.stderr
    assert "queued\ncaught 507" in done.stdout
    assert "a kernel failed" in done.stdout


# What users do with a recording when a program has gone wrong.
AFTERWARDS = """
import json
from mindtorch_v2.profiler import profile

def kept(prof):
    prof.save("kept.mtp")
    prof.export_chrome_trace("kept.json")
    with open("kept.json") as file:
        exported = [e["name"] for e in json.load(file)["traceEvents"]
                    if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    print(prof.key_averages().table())
    work = [e.name for e in prof.events() if e["device_type"] == "NPU"]
    assert len(work) == len(exported), (work, exported)
    return work
"""


def test_a_kernel_error_in_a_recording_is_told_to_the_program(program: Any) -> None:
    """The profiler waits first, and must pass the error on; work belongs to the ops that queued it."""
    done = program(START + AFTERWARDS + """
x = torch.ones(8, 8, device="npu")
torch.npu.synchronize()
prof = profile()
with prof:
    for _ in range(3):
        x = torch.tanh(x @ x)
try:
    torch.npu.synchronize()
except torch.AcceleratorError as error:
    print("told", error.error_code)
torch.npu.synchronize()  # once
print(len(kept(prof)), "kernels")
for event in prof.events():
    if event.name in ("aten::mm", "aten::tanh"):
        print(event.name, [kernel.name for kernel in event.kernels])
""", MINDTORCH_NPU_SIM_FAULTS="kernel:3")
    assert done.returncode == 0, done.stderr
    assert "told 507015" in done.stdout
    assert "5 kernels" in done.stdout
    assert "aten::tanh []" in done.stdout
    assert done.stdout.count("aten::mm ['aclnnMm_") == 3
    assert done.stdout.count("aten::tanh ['aclnnTanh_") == 2
    assert "incomplete" in done.stdout


@pytest.mark.parametrize("collector", ["simulator", *(["events", "mspti"] if LONG else [])])
def test_a_device_lost_in_a_recording_keeps_what_was_recorded(program: Any, collector: str) -> None:
    done = program(START + AFTERWARDS + """
x = torch.ones(64, 64, device="npu")
torch.npu.synchronize()
prof = profile()
try:
    with prof:
        for i in range(50):
            x = torch.tanh(x)
            torch.npu.synchronize()
except RuntimeError as error:
    print("lost:", error)
print(len(kept(prof)) > 2, len([e for e in prof.events() if e.name == "aten::tanh"]) > 3)
for attempt in (lambda: x.cpu(), lambda: x + 1, torch.npu.Stream, torch.npu.empty_cache):
    try:
        attempt()
    except RuntimeError as error:
        print("again:", error)
with profile() as later:  # the rest of the program can still be looked at
    torch.ones(3) + 1
assert kept(later) == []
""", MINDTORCH_NPU_SIM_FAULTS="lost:20", MINDTORCH_NPU_COLLECTOR=collector)
    assert (done.returncode, done.stderr) == (0, "")
    assert "lost: NPU error" in done.stdout
    assert "True True" in done.stdout
    assert "incomplete" in done.stdout
    assert done.stdout.count("again: NPU error") == 4
    assert done.stdout.count("is lost") >= 5


def test_a_device_lost_before_its_clock_was_read(program: Any) -> None:
    done = program(START + AFTERWARDS + """
torch.npu.init()
prof = profile()
try:
    with prof:
        y = torch.ones(4, device="npu:1")
        while True:
            y = torch.tanh(y)
            torch.npu.synchronize(1)
except RuntimeError as error:
    print("lost:", error)
print(kept(prof), [e.name for e in prof.events()].count("aten::tanh") > 2)
""", MINDTORCH_NPU_SIM_FAULTS="lost:15")
    assert done.returncode == 0, done.stderr
    assert "lost: NPU error" in done.stdout
    assert "[] True" in done.stdout


def test_out_of_memory_in_a_recording(program: Any) -> None:
    done = program(START + AFTERWARDS + """
prof, held = profile(profile_memory=True), []
try:
    with prof:
        while True:
            held.append(torch.ones(1 << 20, device="npu"))
except torch.OutOfMemoryError as error:
    print(error)
print(len(kept(prof)) == len(held) > 8, held[-1].sum().item())
""", MINDTORCH_NPU_SIM_MEMORY="64M")
    assert done.returncode == 0, done.stderr
    assert "NPU out of memory. Tried to allocate 4.00 MiB" in done.stdout
    assert "True 1048576.0" in done.stdout


def test_a_library_without_an_operator(program: Any, tmp_path: Any) -> None:
    """An installation that is older than an op: the op says so, everything else works."""
    from mindtorch_v2._backends.npu.sim import build

    folder = tmp_path / "lib64"
    folder.mkdir()
    code = build.library().read_bytes()
    older = code.replace(b"\0aclnnTanhGetWorkspaceSize\0", b"\0aclnnTanhGetWorkspaceNone\0")
    assert older != code
    (folder / "libascendcl.so").write_bytes(older)
    for name in ("libnnopbase.so", "libopapi.so"):
        (folder / name).symlink_to("libascendcl.so")
    done = program(START + AFTERWARDS + """
prof = profile()
try:
    with prof:
        x = torch.ones(4, device="npu") + 1
        torch.tanh(x)
except RuntimeError as error:
    print("error:", error)
print(len(kept(prof)), x.tolist())
""", MINDTORCH_NPU="ascend", ASCEND_HOME_PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "error: aclnnTanhGetWorkspaceSize is in none of the NPU libraries at" in done.stdout
    assert "2 [2.0, 2.0, 2.0, 2.0]" in done.stdout


@pytest.mark.parametrize("fault", ["malloc:1+", "memcpy:1", "launch:2", "event:1"])
def test_failures_are_errors_with_code_and_message(program: Any, fault: str) -> None:
    done = program(START + """
x = torch.ones(1 << 20, device="npu") + 1
x.cpu(); torch.npu.current_stream().record_event().synchronize()
""", MINDTORCH_NPU_SIM_FAULTS=fault)
    fails(done, "out of memory" if fault.startswith("malloc") else "returned")
    assert "Segmentation" not in done.stderr


def test_out_of_memory_is_retried_after_freeing_the_cache(program: Any) -> None:
    done = program(START + """
a = torch.empty(30 << 18, device="npu"); b = torch.empty(20 << 18, device="npu"); del a, b
c = torch.empty(40 << 18, device="npu")
print(torch.npu.memory_stats()["num_alloc_retries"])
try:
    torch.empty(80 << 18, device="npu")
except torch.OutOfMemoryError as error:
    print(error)
print((torch.ones(3, device="npu") * 2).tolist())
""", MINDTORCH_NPU_SIM_MEMORY="64M")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1\nNPU out of memory. Tried to allocate 80.00 MiB")
    assert done.stdout.rstrip().endswith("[2.0, 2.0, 2.0]")


def test_a_forked_child_says_what_to_do(program: Any) -> None:
    done = program(START + """
import os
x = torch.ones(3, device="npu")
if os.fork() == 0:
    try:
        x + x
    except RuntimeError as error:
        print("child:", error)
        os._exit(0)
    os._exit(1)
os.wait()
print("parent:", (x + x).tolist())
""")
    assert done.returncode == 0, done.stderr
    assert "child: Cannot re-initialize NPU in forked subprocess" in done.stdout
    assert "'spawn' start method" in done.stdout
    assert "parent: [2.0, 2.0, 2.0]" in done.stdout


def test_asking_for_devices_does_not_prevent_a_fork(program: Any) -> None:
    done = program(START + """
import os
print(torch.npu.is_available(), torch.npu.device_count())
if os.fork() == 0:
    print("child:", torch.ones(2, device="npu").tolist(), flush=True)
    os._exit(0)
os.wait()
""")
    assert done.returncode == 0, done.stderr
    assert "child: [1.0, 1.0]" in done.stdout


def test_a_stream_of_a_device_that_was_reset(program: Any) -> None:
    done = program(START + AFTERWARDS + """
from mindtorch_v2._backends.npu import runtime
stream, event, x = torch.npu.Stream(), torch.npu.Event(enable_timing=True), torch.ones(4, device="npu")
event.record()
prof = profile()
with prof:
    (x + 1).sum().item()
    runtime.reset(0)
    for attempt in (stream.synchronize, stream.query, lambda: stream.wait_event(event), event.query, event.synchronize,
                    lambda: event.record(stream), lambda: event.elapsed_time(event), lambda: x + 1, x.cpu):
        try:
            attempt()
        except RuntimeError as error:
            print("error:", error)
print(len(kept(prof)))
""")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "error: NPU error: aclrtSynchronizeStream returned" in done.stdout
    assert done.stdout.count("error: NPU error") == 9


def test_a_program_that_ends_with_work_under_way(program: Any) -> None:
    done = program(START + """
x = torch.ones(512, 512, device="npu")
for _ in range(50):
    x = x @ x * 1e-3
keep = [x, torch.npu.Stream(), torch.npu.Event()]
""")
    assert (done.returncode, done.stderr) == (0, "")
