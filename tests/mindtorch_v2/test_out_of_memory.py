"""An allocation that the system refuses: PyTorch's error, and an event of the recording."""

from __future__ import annotations

import functools
import json
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.observer import HOOK
from mindtorch_v2.profiler import profile
from mtprof.schema import KINETO_TABLES
from mtprof.store.kineto import read
from mtprof.tables.compare import assert_traces_equal

assert_same_file = functools.partial(assert_traces_equal, tables=KINETO_TABLES)
HUGE = 10**15  # elements: more bytes than any address space has


def refused(size_bytes):
    return pytest.raises(RuntimeError, match=rf"DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                                             rf"{size_bytes} bytes. Error code 12 \(Cannot allocate memory\)")


@pytest.mark.parametrize(("make", "size_bytes"), [
    (lambda: torch.empty(HUGE), 4 * HUGE),
    (lambda: torch.zeros(HUGE, dtype=torch.float64), 8 * HUGE),
    (lambda: torch.ones(3).expand(HUGE, 3) + 1, 12 * HUGE),
    (lambda: torch.ones(10**7, 1) @ torch.ones(1, 10**7), 4 * 10**14),
    (lambda: torch.nn.Linear(10**7, 10**8), 4 * HUGE),
])
def test_the_error_says_how_much(make, size_bytes):
    with refused(size_bytes):
        make()


def test_a_size_that_no_number_holds():
    with pytest.raises(RuntimeError, match=r"Storage size calculation overflowed with sizes=\[4611686018427387904\]"):
        torch.empty(2**62)


def fail():
    with refused(4 * HUGE):
        torch.empty(HUGE)


def test_it_is_an_event(tmp_path):
    with profile(profile_memory=True) as prof:
        kept = torch.ones(1000)
        fail()
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
    del kept
    found = [event for event in prof.events() if event.name == "[OutOfMemory]"]
    facts = [(event.cpu_memory_usage, event.cpu_time_total, event.cpu_parent.name, event["kind"]) for event in found]
    assert facts == [(0, 0, "aten::empty", "memory")] * 2
    assert found[0].thread != found[1].thread
    (row,) = [row for row in prof.key_averages() if row.key == "[OutOfMemory]"]
    assert row.count == 2
    assert row.cpu_memory_usage == 0
    failures = prof.trace.failures
    assert failures["size_bytes"].tolist() == [4 * HUGE] * 2
    assert failures["total_bytes"].tolist() == [4000] * 2
    prof.export_chrome_trace(tmp_path / "trace.json")
    written = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    events = [event for event in written if event["name"] == "[OutOfMemory]"]
    assert events[0]["ph"] == "i"
    assert events[0]["cat"] == "cpu_instant_event"
    assert {key: events[0]["args"][key] for key in ("Bytes", "Total Allocated", "Device Type", "Device Id")} == {
        "Bytes": 4 * HUGE, "Total Allocated": 4000, "Device Type": 0, "Device Id": -1}
    assert "Addr" not in events[0]["args"]
    assert_same_file(read(tmp_path / "trace.json"), prof.trace)


def test_totals_of_memory_do_not_count_it():
    with profile(profile_memory=True) as prof:
        fail()
    assert prof.profiler.total_average().cpu_memory_usage == 0
    assert not len(prof.trace.memory["time_ns"])


def test_only_recordings_of_memory_have_it():
    with profile() as outer, profile(profile_memory=True) as inner:
        fail()
    assert not outer.trace.has("failures")
    assert len(inner.trace.failures["time_ns"]) == 1
    assert HOOK["FAILED"] is None
    with profile(profile_memory=True) as after:
        pass
    assert not len(after.trace.failures["time_ns"])


def test_it_is_in_the_step_that_asked_for_memory():
    with profile(profile_memory=True) as prof, torch.profiler.record_function("scope"):
        with refused(4 * HUGE):
            torch.ones(1).expand(HUGE).clone()
        with refused(4 * HUGE):
            torch.ones(1).expand(HUGE) + 1
    found = [event for event in prof.events() if event.name == "[OutOfMemory]"]
    assert [event.cpu_parent.name for event in found] == ["aten::empty_strided", "aten::add"]
    assert [event in event.cpu_parent.cpu_children for event in found] == [True, True]
    inside = {}

    def walk(event):
        for child in event.children:
            inside.setdefault(child.name, []).append(event.name)
            walk(child)

    for root in prof.profiler.kineto_results.experimental_event_tree():
        walk(root)
    assert inside["[OutOfMemory]"] == ["aten::empty_strided", "aten::add"]
