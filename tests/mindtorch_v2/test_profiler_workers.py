"""Worker processes of a loader, and threads, while the main process profiles."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.sources import processes
from mindtorch_v2.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from mtprof.schema import KINETO_TABLES, Kind
from mtprof.store.kineto import read
from mtprof.tables.check import check
from mtprof.tables.compare import assert_traces_equal
from mtprof.tables.links import forward_of

# Python 3.12 and later warn about fork when NumPy has started threads of its own.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create",
                                        "ignore:This process:DeprecationWarning")
NEXT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


class Loading(Dataset):
    """Sample i, made by an op inside a scope; something may happen before."""

    def __init__(self, size=8, before=None):
        self.size = size
        self.before = before

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if self.before is not None:
            self.before(index)
        with record_function("load"):
            return torch.full((3,), float(index)).neg()


class Stream(IterableDataset):
    """A stream for each worker, of another length."""

    def __iter__(self):
        for index in range(2 + 4 * get_worker_info().id):
            with record_function("load"):
                value = torch.full((3,), float(index))
            yield value


def kill_at_five(index):
    if index == 5:
        os.kill(os.getpid(), signal.SIGKILL)


def stop_at_five(index, stopped=[]):  # noqa: B006
    """Once: the default is this worker's memory."""
    if index == 5 and not stopped:
        stopped.append(True)
        os.kill(os.getpid(), signal.SIGSTOP)


def sleep_at_one(index):
    if index == 1:
        time.sleep(3)


def work(count):
    with record_function("work"):
        for _ in range(count):
            torch.ones(2)
    return os.getpid()


def workers_of(prof):
    """Events of each worker, by the name of its process."""
    found = {}
    for event in prof.events():
        if event.pid != os.getpid():
            found.setdefault(event.process_name, []).append(event)
    return found


@pytest.fixture(autouse=True)
def nobody_left():
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    assert processes.Children.recordings == {}
    assert processes.Children.arrived == {}


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_events_of_workers_come_home(context):
    with profile() as prof:
        for batch in DataLoader(Loading(), batch_size=2, num_workers=2, multiprocessing_context=context):
            batch.exp()
    trace = check(prof.trace)
    found = workers_of(prof)
    assert sorted(found) == ["DataLoader worker 0", "DataLoader worker 1"]
    for events in found.values():
        counts = Counter(event.name for event in events)
        assert counts["load"] == counts["aten::neg"] == 4
        assert counts["aten::stack"] == 2
        assert len({event.pid for event in events}) == 1
        # Where PyTorch has the process of what ran on the CPU.
        assert {event.device_index for event in events} == {events[0].pid}
        load = next(event for event in events if event.name == "load")
        assert "aten::neg" in [child.name for child in load.cpu_children]
    own = Counter(event.name for event in prof.events() if event.pid == os.getpid())
    assert own["aten::exp"] == 4
    assert own[NEXT] == 5
    assert "aten::neg" not in own
    assert trace.metadata.get("lost_processes") is None
    # The thread that works is the process's first, also in a forked one.
    assert all(info.tid == info.pid for info in trace.threads)


def test_averages_count_all_processes():
    with profile() as prof:
        for batch in DataLoader(Loading(), batch_size=2, num_workers=2):
            batch.neg()
    row = next(row for row in prof.key_averages() if row.key == "aten::neg")
    assert row.count == 8 + 4
    assert row.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in prof.events() if e.name == "aten::neg"))
    assert "aten::neg" in prof.key_averages().table()
    total = sum(event.self_cpu_time_total for event in prof.events())
    assert prof.profiler.self_cpu_time_total == pytest.approx(total)


def test_times_of_workers_are_the_main_process_s():
    """A batch is loaded before the main process has it, and after the loader was asked for the first one."""
    begin = time.perf_counter_ns()
    with profile() as prof:
        list(DataLoader(Loading(), batch_size=2, num_workers=2))
        end = time.perf_counter_ns()
    trace = prof.trace
    of_worker = np.array([info.pid != os.getpid() for info in trace.threads])[trace.events["thread"]]
    assert of_worker.any()
    assert (trace.events["start_ns"][of_worker] > begin).all()
    assert (trace.events["end_ns"][of_worker] < end).all()
    received = max(event.time_range.end for event in prof.events() if event.name == NEXT)
    assert all(event.time_range.end < received for event in prof.events() if event.name == "aten::stack")


def test_a_clock_of_its_own_is_aligned():
    """If perf_counter is not the system's clock, the difference is measured: here it is zero, within a few ms."""
    loader = DataLoader(Loading(), batch_size=2, num_workers=2, persistent_workers=True)
    list(loader)
    channels = [worker.channel for worker in loader._iterator._workers]
    for channel in channels:
        channel.offset_ns = None
    with profile() as prof:
        list(loader)
    assert all(abs(channel.offset_ns) < 500_000_000 for channel in channels)
    for channel in channels:
        channel.offset_ns = 10**15
    with profile() as moved:
        list(loader)
    assert len(workers_of(prof)) == 2
    # So far in the future that it is after the end of the recording.
    assert not workers_of(moved)


def test_options_hold_in_workers():
    with profile(record_shapes=True, profile_memory=True, with_flops=True) as prof:
        list(DataLoader(Loading(), batch_size=2, num_workers=1))
    events = workers_of(prof)["DataLoader worker 0"]
    neg = [event for event in events if event.name == "aten::neg"]
    assert all(event.input_shapes == [[3]] and event.cpu_memory_usage == 12 for event in neg)
    mine = {event.pid: event.cpu_memory_usage for event in prof.events() if event.name == "[memory]"}
    assert len(mine) == 2  # releases outside ops, in both processes
    with profile(record_shapes=True) as plain:
        list(DataLoader(Loading(), batch_size=2, num_workers=1))
    assert not (plain.trace.events["flops"] >= 0).any()
    assert not plain.trace.has("memory")


def test_blocks_of_two_processes_are_not_the_same_block():
    with profile(profile_memory=True) as prof:
        list(DataLoader(Loading(), batch_size=2, num_workers=2))
    memory = prof.trace.memory
    pids = np.array([info.pid for info in prof.trace.threads])[memory["thread"]]
    owners = {}
    for address, pid in zip(memory["address"].tolist(), pids.tolist(), strict=True):
        assert owners.setdefault(address, pid) == pid
    assert len(set(owners.values())) == 3


def test_stacks_of_workers():
    with profile(with_stack=True) as prof:
        list(DataLoader(Loading(), batch_size=2, num_workers=1))
    events = workers_of(prof)["DataLoader worker 0"]
    neg = [event for event in events if event.name == "aten::neg"]
    assert neg
    assert all(any("__getitem__" in entry for entry in event.stack) for event in neg)
    assert not any("reporting.py" in event.name or "connection.py" in event.name for event in events)
    assert check(prof.trace)


class Differentiating(Dataset):
    """A sample is a gradient: a worker has sequence numbers of its own."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        x = torch.ones(3, requires_grad=True)
        with record_function("in a worker"):
            x.exp().sum().backward()
        return x.grad


def test_backward_belongs_to_the_forward_of_its_own_process():
    with profile() as prof:
        x = torch.ones(2, requires_grad=True)
        for batch in DataLoader(Differentiating(), num_workers=2):
            (x.sin() * batch.sum()).sum().backward()
    trace = prof.trace
    forward = forward_of(trace)
    linked = np.flatnonzero(forward >= 0)
    pids = np.array([info.pid for info in trace.threads])[trace.events["thread"]]
    assert len(set(pids[linked].tolist())) == 3
    assert (pids[linked] == pids[forward[linked]]).all()
    functions = [event for event in prof.events() if event.name in ("ExpBackward0", "SinBackward0")]
    assert len({event.pid for event in functions}) == 3
    assert all(event.fwd_thread == event.thread for event in functions)


def test_a_recording_that_ends_while_a_worker_starts_ends_in_the_worker():
    loader = DataLoader(Loading(), batch_size=2, num_workers=1, persistent_workers=True)
    list(loader)
    worker = loader._iterator._workers[0]
    processes.join(worker.channel, [10**6])  # a key that nobody knows any more
    with profile() as prof:
        list(loader)
    assert sum(event.name == "load" for event in prof.events()) == 8


def test_the_file_has_processes_and_is_read_back(tmp_path):
    path = tmp_path / "trace.json"
    with profile(record_shapes=True, profile_memory=True) as prof:
        list(DataLoader(Loading(), batch_size=2, num_workers=2))
    prof.export_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(names.values()) == ["DataLoader worker 0", "DataLoader worker 1", "python"]
    for pid, name in names.items():
        loads = [event for event in events if event["name"] == "load" and event["pid"] == pid]
        assert len(loads) == (0 if name == "python" else 4)
        assert any(event["name"] == "thread_name" and event["pid"] == pid for event in events)
    back = read(path)
    assert {info.pid: info.process_name for info in back.threads} == names
    assert_traces_equal(back, prof.trace, tables=KINETO_TABLES)


def test_workers_that_were_there_before_the_profiler_take_part():
    loader = DataLoader(Loading(), batch_size=2, num_workers=2, persistent_workers=True)
    list(loader)
    pids = {child.pid for child in multiprocessing.active_children()}
    for _ in range(2):
        with profile() as prof:
            list(loader)
        found = workers_of(prof)
        assert {event.pid for events in found.values() for event in events} == pids
        assert Counter(event.name for events in found.values() for event in events)["load"] == 8
    list(loader)  # nobody profiles: nothing is kept for anybody
    with profile() as idle:
        torch.ones(1)
    assert not workers_of(idle)
    assert not any(worker.channel.keys for worker in loader._iterator._workers)


def test_a_profiler_inside_a_profiler_has_its_part():
    loader = DataLoader(Loading(), batch_size=2, num_workers=2, persistent_workers=True)
    with profile() as outer:
        list(loader)
        with profile() as inner:
            list(loader)
    for prof, loads in ((outer, 16), (inner, 8)):
        assert sum(event.name == "load" for event in prof.events()) == loads


def test_a_pause_holds_for_workers():
    loader = DataLoader(Loading(), batch_size=2, num_workers=2, persistent_workers=True)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with profile() as prof:
        list(loader)
        prof.toggle_collection_dynamic(False, activities)
        list(loader)
        prof.toggle_collection_dynamic(True, activities)
        list(loader)
    assert sum(event.name == "load" for event in prof.events()) == 16
    check(prof.trace)


def test_steps_of_a_schedule_are_the_workers_too():
    traces = []
    plan = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    with profile(schedule=plan, on_trace_ready=lambda p: traces.append(p.trace)) as prof:
        for _ in DataLoader(Loading(size=10), batch_size=2, num_workers=1, prefetch_factor=1):
            time.sleep(0.02)
            prof.step()
    (trace,) = traces
    of_worker = np.array([info.pid != os.getpid() for info in trace.threads])[trace.events["thread"]]
    steps = trace.events["step"][of_worker & (trace.events["kind"] == Kind.SCOPE)]
    assert len(steps)
    assert set(steps.tolist()) <= {0, 1, 2}
    assert (trace.events["start_ns"][of_worker] <= trace.end_ns).all()


def test_streams_that_end_early():
    with profile() as prof:
        list(DataLoader(Stream(), batch_size=2, num_workers=2))
    counts = {name: Counter(e.name for e in events)["load"] for name, events in workers_of(prof).items()}
    assert counts == {"DataLoader worker 0": 2, "DataLoader worker 1": 6}


def test_a_worker_that_is_killed_loses_only_its_own(tmp_path):
    loader = DataLoader(Loading(size=8, before=kill_at_five), batch_size=1, num_workers=2)
    with (
        pytest.warns(RuntimeWarning, match=r"DataLoader worker 1 \(pid \d+\) ended before") as seen,
        profile() as prof,
        pytest.raises(RuntimeError, match="exited unexpectedly"),
    ):
        list(loader)
    assert [w.filename for w in seen if w.category is RuntimeWarning] == [__file__]
    assert list(workers_of(prof)) == ["DataLoader worker 0"]
    assert [line[:19] for line in prof.trace.metadata["lost_processes"]] == ["DataLoader worker 1"]
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert len(json.loads((tmp_path / "trace.json").read_text())["lost_processes"]) == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux whether a process is stopped")
def test_a_worker_that_does_not_answer_is_not_waited_for_longer_than_said(monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE", 0.5)
    loader = DataLoader(Loading(size=8, before=stop_at_five), batch_size=1, num_workers=2, persistent_workers=True)
    prof = profile()
    prof.start()
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    stopped = loader._iterator._workers[1].process.pid
    while Path(f"/proc/{stopped}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    begin = time.monotonic()
    with pytest.warns(RuntimeWarning, match="DataLoader worker 1 .* did not answer within 0.5 s"):
        prof.stop()
    assert 0.4 < time.monotonic() - begin < 5
    assert "DataLoader worker 0" in workers_of(prof)
    os.kill(stopped, signal.SIGCONT)
    # Its late answer belongs to a recording that is over.
    with profile() as after:
        list(loader)
    assert len(workers_of(after)) == 2
    assert Counter(e.name for e in after.events())["load"] >= 8


def test_a_busy_worker_answers():
    """Its events so far arrive while it is in the middle of a sample."""
    loader = DataLoader(Loading(size=4, before=sleep_at_one), batch_size=1, num_workers=1, persistent_workers=True)
    with profile() as prof:
        iterator = iter(loader)
        next(iterator)
        begin = time.monotonic()
    assert time.monotonic() - begin < 2
    assert Counter(e.name for e in workers_of(prof)["DataLoader worker 0"])["load"] == 1


def test_a_large_recording_comes_home_whole():
    with profile() as prof:
        list(DataLoader(Loading(size=4000), batch_size=50, num_workers=2))
    assert Counter(e.name for e in prof.events())["load"] == 4000


def test_a_limit_holds_in_each_process():
    with profile(max_events=20) as prof:
        list(DataLoader(Loading(size=40), batch_size=2, num_workers=2))
    counts = Counter(event.pid for event in prof.events())
    assert set(counts.values()) == {20} or max(counts.values()) == 20
    assert prof.trace.dropped > 100


def test_nothing_happens_without_a_profiler():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        loader = DataLoader(Loading(), batch_size=2, num_workers=2)
        assert len(list(loader)) == 4


# -- threads --------------------------------------------------------------------------------------------------------


def test_a_pool_of_threads_is_recorded():
    with ThreadPoolExecutor(2, thread_name_prefix="helper") as pool:
        list(pool.map(work, [1, 1]))  # both threads may exist before the recording
        with profile() as prof:
            list(pool.map(work, [3, 4, 5]))
    counts = Counter(event.name for event in prof.events())
    assert counts["work"] == 3
    assert counts["aten::ones"] == 12
    assert {event.pid for event in prof.events()} == {os.getpid()}
    names = {prof.trace.threads[event.thread - 1].name for event in prof.events() if event.name == "work"}
    assert names <= {"helper_0", "helper_1"}


def test_a_worker_has_one_thread_more_and_the_main_process_none():
    before = threading.active_count()
    loader = DataLoader(Loading(), num_workers=2, persistent_workers=True)
    with profile():
        list(loader)
    assert threading.active_count() == before
