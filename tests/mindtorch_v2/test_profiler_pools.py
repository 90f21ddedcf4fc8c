"""Workers of process pools while the main process profiles."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import tempfile
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from multiprocessing.util import get_temp_dir
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.sources import processes
from mtprof.tables.check import check

# Python 3.12 and later warn about fork when NumPy has started threads of its own.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
METHODS = ["fork", "spawn", "forkserver"]
START, TERMINATE = BaseProcess.start, BaseProcess.terminate


def work(count):
    with record_function("work"):
        for _ in range(count):
            torch.ones(2)
    return os.getpid()


def sleep_and_work(seconds):
    time.sleep(seconds)
    return work(1)


def work_and_sleep(seconds):
    work(1)
    time.sleep(seconds)


def stop(_):
    os.kill(os.getpid(), signal.SIGSTOP)


def end_at_once(_):
    os.kill(os.getpid(), signal.SIGKILL)


def profile_here(count):
    with profile() as prof:
        work(count)
    return [event.name for event in prof.events()]


def pool_inside(count):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(work, count).result()


def both_work_and_one_dies(pool):
    while len(set(pool.map(sleep_and_work, [0.1, 0.1]))) < 2:
        pass
    pool.submit(end_at_once, None).result()


def executor(count=2, method="fork", **options):
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context(method), **options)


def counts_by_process(prof):
    """How often each name occurs, by process id and name of the process, without this one."""
    found = {}
    for event in prof.events():
        if event.pid != os.getpid():
            found.setdefault((event.pid, event.process_name), Counter())[event.name] += 1
    return found


def wait_until_stopped(pid):
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def nobody_left(tmp_path, monkeypatch):
    get_temp_dir()  # multiprocessing keeps the usual one: a fork server's socket outlives a test, and has a short name
    files = tmp_path / "files"
    files.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(files))
    threads = threading.active_count()
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    assert processes.Children.recordings == {}
    assert processes.Children.arrived == {}
    assert BaseProcess.start is START
    assert BaseProcess.terminate is TERMINATE
    assert list(files.glob("profiler-*")) == []
    assert threading.active_count() == threads


@pytest.mark.parametrize("method", METHODS)
def test_events_of_an_executor_s_workers_come_home(method):
    begin = time.perf_counter_ns()
    with profile(record_shapes=True) as prof:
        with executor(2, method) as pool:
            pids = list(pool.map(work, [1, 2, 3, 4]))
        end = time.perf_counter_ns()
        torch.ones(1).exp()
    trace = check(prof.trace)
    found = counts_by_process(prof)
    assert {pid for pid, _ in found} == set(pids)
    assert {name for _, name in found} <= {"ProcessPoolExecutor worker 0", "ProcessPoolExecutor worker 1"}
    assert len({name for _, name in found}) == len(found)
    total = sum(found.values(), Counter())
    assert total["work"] == 4
    assert total["aten::ones"] == 10
    assert trace.metadata.get("lost_processes") is None
    # By the clock of this process: while the pool was there.
    of_worker = np.array([info.pid != os.getpid() for info in trace.threads])[trace.events["thread"]]
    assert (trace.events["start_ns"][of_worker] > begin).all()
    assert (trace.events["end_ns"][of_worker] < end).all()
    own = Counter(event.name for event in prof.events() if event.pid == os.getpid())
    assert own["aten::exp"] == own["aten::ones"] == 1
    assert "work" not in own
    scope = next(event for event in prof.events() if event.name == "work")
    assert {child.name for child in scope.cpu_children} == {"aten::ones"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("orderly", [True, False])
def test_events_of_a_pool_s_workers_come_home(method, orderly):
    """Also if the pool is ended with `terminate`, as at the end of its `with`."""
    with profile() as prof, multiprocessing.get_context(method).Pool(2) as pool:
        pids = pool.map(work, [1, 2, 3, 4], chunksize=1)
        if orderly:
            pool.close()
            pool.join()
    found = counts_by_process(prof)
    assert {pid for pid, _ in found} == set(pids)
    assert {name for _, name in found} <= {"Pool worker 0", "Pool worker 1"}
    assert sum(found.values(), Counter())["aten::ones"] == 10
    assert prof.trace.metadata.get("lost_processes") is None


def test_a_large_recording_does_not_stop_a_pool_from_ending():
    """It is more than a pipe holds, and nobody reads while the pool waits for its worker."""
    with profile() as prof, executor(1) as pool:
        pool.submit(work, 20_000).result()
    (found,) = counts_by_process(prof).values()
    assert found["aten::ones"] == 20_000


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_that_outlives_the_profiler(method):
    with executor(1, method) as pool:
        with profile() as first:
            pid = pool.submit(work, 3).result()
        assert BaseProcess.start is START
        pool.submit(work, 5).result()
        with profile() as second:
            pool.submit(work, 7).result()
        pool.submit(work, 9).result()
    for prof, count in ((first, 3), (second, 7)):
        assert {key: found["aten::ones"] for key, found in counts_by_process(prof).items()} == {
            (pid, "ProcessPoolExecutor worker 0"): count}


def test_a_schedule_may_begin_to_record_after_the_pool_has_started():
    traces = []
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with executor(1) as pool:
        with profile(schedule=plan, on_trace_ready=lambda prof: traces.append(counts_by_process(prof))) as prof:
            assert BaseProcess.start is not START
            for _ in range(6):
                pid = pool.submit(work, 1).result()
                prof.step()
        assert BaseProcess.start is START
        pool.submit(work, 1).result()
    ((key, found),) = traces[0].items()
    assert len(traces) == 1
    assert key == (pid, "ProcessPoolExecutor worker 0")
    assert found["work"] == found["aten::ones"] == 2


def test_a_pool_that_is_over_before_the_next_recording_is_not_missed():
    with profile(), executor(1) as pool, multiprocessing.get_context("fork").Pool(1) as other:
        pool.submit(work, 1).result()
        other.map(work, [1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with profile() as prof:
            torch.ones(1)
    assert not counts_by_process(prof)


def test_a_child_that_ends_before_it_begins_is_not_missed():
    requests, asked = multiprocessing.Pipe(duplex=False)
    told, reports = multiprocessing.Pipe(duplex=False)
    channel = processes.Channel("child", asked, told)
    processes.join(channel, [])

    def child():
        assert requests.recv()[0] == "start"
        reports.close()

    thread = threading.Thread(target=child)
    thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with profile() as prof:
            torch.ones(1)
    thread.join()
    assert channel.closed
    assert prof.trace.metadata.get("lost_processes") is None


def test_workers_that_were_there_before_the_profiler_are_silent():
    with executor(1) as pool:
        pool.submit(work, 1).result()
        with profile() as prof:
            pool.submit(work, 3).result()
    assert not counts_by_process(prof)


def test_other_children_are_silent():
    context = multiprocessing.get_context("fork")
    with profile() as prof:
        process = context.Process(target=work, args=(3,))
        process.start()
        process.join()
        torch.ones(1)
    assert process.exitcode == 0
    assert not counts_by_process(prof)


def test_a_pool_of_a_worker_is_silent():
    with profile() as prof, executor(1) as pool:
        inner = pool.submit(pool_inside, 3).result()
        outer = pool.submit(work, 2).result()
    assert [pid for pid, _ in counts_by_process(prof)] == [outer]
    assert inner != outer


def test_a_worker_may_profile_for_itself():
    with profile() as prof, executor(1) as pool:
        names = pool.submit(profile_here, 2).result()
    assert Counter(names)["aten::ones"] == 2
    (found,) = counts_by_process(prof).values()
    assert found["aten::ones"] == 2


def test_a_busy_worker_answers():
    with executor(1) as pool:
        with profile() as prof:
            future = pool.submit(work_and_sleep, 2)
            time.sleep(0.5)
            begin = time.monotonic()
        assert time.monotonic() - begin < 1
        assert not future.done()
    (found,) = counts_by_process(prof).values()
    assert found["work"] == 1


def test_a_pool_that_was_told_to_end_without_waiting():
    with profile() as prof:
        pool = executor(1)
        future = pool.submit(sleep_and_work, 0.2)
        manager = pool._executor_manager_thread
        pool.shutdown(wait=False)
        future.result()
    (found,) = counts_by_process(prof).values()
    assert found["work"] == 1
    manager.join()


def test_workers_that_are_replaced_do_not_add_up():
    """Each is in the trace; pipes of ended workers are closed while the recording continues."""
    with profile() as prof, multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        before = len(os.listdir("/dev/fd"))
        pids = pool.map(work, [1] * 12, chunksize=1)
        during = len(os.listdir("/dev/fd"))
        pool.close()
        pool.join()
    found = {key: counts["work"] for key, counts in counts_by_process(prof).items()}
    assert len(set(pids)) == 12
    assert found == {(pid, f"Pool worker {number}"): 1 for number, pid in enumerate(pids)}
    assert during - before <= 8  # those of the last workers, not two for each


def test_a_worker_that_is_killed_loses_only_its_own():
    begin = time.monotonic()
    with (
        pytest.warns(RuntimeWarning, match=r"ProcessPoolExecutor worker \d \(pid \d+\) ended before") as seen,
        profile() as prof,
        executor(2) as pool,
        pytest.raises(BrokenProcessPool),
    ):
        both_work_and_one_dies(pool)
    assert time.monotonic() - begin < processes.PATIENCE
    assert len([w for w in seen if w.category is RuntimeWarning]) == 1
    assert len(counts_by_process(prof)) == 1
    assert len(prof.trace.metadata["lost_processes"]) == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux whether a process is stopped")
def test_a_worker_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE", 0.5)
    with executor(1) as pool:
        prof = profile()
        prof.start()
        pid = pool.submit(work, 30_000).result()
        future = pool.submit(stop, None)
        wait_until_stopped(pid)
        begin = time.monotonic()
        with pytest.warns(RuntimeWarning, match="ProcessPoolExecutor worker 0 .* did not answer within 0.5 s"):
            prof.stop()
        assert 0.4 < time.monotonic() - begin < 3
        os.kill(pid, signal.SIGCONT)
        future.result()
        # Its late answer, larger than a pipe takes, neither stops it nor belongs to the next recording.
        with profile() as after:
            pool.submit(work, 2).result()
    assert not counts_by_process(prof)
    (found,) = counts_by_process(after).values()
    assert found["aten::ones"] == 2


def test_a_clock_of_its_own_is_aligned(monkeypatch):
    """The clock of an ended worker cannot be asked; then the time of day gives the difference."""
    made = []
    original = processes.Channel

    def channel(*arguments, **options):
        made.append(original(*arguments, **options, offset_ns=None))
        return made[-1]

    monkeypatch.setattr(processes, "Channel", channel)
    with profile() as ended:
        with executor(1) as pool:
            pool.submit(work, 2).result()
        torch.ones(1)
        time.sleep(0.1)
    assert made[0].offset_ns is None
    with executor(1) as pool, profile() as alive:
        pool.submit(work, 2).result()
    assert abs(made[1].offset_ns) < 500_000_000
    for prof in (ended, alive):
        (found,) = counts_by_process(prof).values()
        assert found["work"] == 1
    made.clear()


def test_options_hold_in_workers():
    with profile(record_shapes=True, profile_memory=True, max_events=5) as prof, executor(1) as pool:
        pool.submit(work, 10).result()
    events = [event for event in prof.events() if event.pid != os.getpid() and event.name != "[memory]"]
    assert len(events) == 5
    assert {event.cpu_memory_usage for event in events if event.name == "aten::empty"} == {8}


def test_stacks_of_workers():
    with profile(with_stack=True) as prof, executor(1) as pool:
        pool.submit(work, 1).result()
    events = [event for event in prof.events() if event.pid != os.getpid()]
    ones = [event for event in events if event.name == "aten::ones"]
    assert ones
    assert all(any("work" in entry for entry in event.stack) for event in ones)
    assert not any("reporting.py" in event.name or "connection.py" in event.name for event in events)


def test_no_directory_for_files(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.warns(RuntimeWarning, match="a pool's worker is not recorded"), profile() as prof, executor(1) as pool:
        assert pool.submit(work, 1).result() != os.getpid()
    assert not counts_by_process(prof)


def test_somebody_else_s_start_stays():
    """A `start` that the program replaced during the recording stays, and works."""
    with profile():
        ours = BaseProcess.start
        assert ours is not START
        BaseProcess.start = lambda self: ours(self)
    try:
        assert BaseProcess.start is not START
        process = multiprocessing.get_context("fork").Process(target=work, args=(1,))
        process.start()
        process.join()
        assert process.exitcode == 0
    finally:
        BaseProcess.start = ours
        with profile():
            pass
