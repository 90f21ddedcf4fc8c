"""Children, forks, workers and signals."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time
import traceback
from typing import Any

from ..registry import case
from ..tools import check_recorder, raises

_EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}


@case()
def a_fork_inside(directory: pathlib.Path) -> None:
    """A child that is forked inside a recording works, can record itself and does not disturb its parent."""
    import mindtorch_v2 as torch

    with torch.profiler.profile(**_EVERYTHING) as prof:
        torch.ones(2) + 1
        child = os.fork()
        if child == 0:
            code = 1
            try:
                torch.ones(3) * 2
                with torch.profiler.profile() as inner:
                    torch.arange(3)
                code = 0 if any(event.name == "aten::arange" for event in inner.events()) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        torch.zeros(2)
    assert {"aten::ones", "aten::zeros"} <= {event.name for event in prof.events()}
    check_recorder()


@case(quick=False)
def forks_while_threads_record(directory: pathlib.Path) -> None:
    """Forking while other threads work does not leave the child waiting for a lock."""
    import threading

    import mindtorch_v2 as torch

    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            (torch.ones(3, requires_grad=True) * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(3)]
    with torch.profiler.profile(**_EVERYTHING):
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    signal.alarm(10)
                    (torch.ones(3, requires_grad=True) * 2).sum().backward()
                    os._exit(0)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    check_recorder()


class Numbers:
    """A dataset that can fail, hang, die or kill its worker at an item."""

    def __init__(self, at: int = -1, what: str = "") -> None:
        self.at, self.what = at, what

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        import mindtorch_v2 as torch

        if index == self.at:
            if self.what == "raise":
                raise KeyError("on purpose")
            if self.what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.what == "exit":
                os._exit(3)
        return torch.ones(2) * index


def _loader(at: int = -1, what: str = "", **options: Any) -> Any:
    import mindtorch_v2 as torch

    return torch.utils.data.DataLoader(Numbers(at, what), batch_size=2, num_workers=2, **options)  # type: ignore


@case(seconds=90)
def workers_that_die(directory: pathlib.Path) -> None:
    """A worker that raises, is killed or exits gives an error in the loop; the recording around it is whole."""
    import mindtorch_v2 as torch

    for what in ("raise", "kill", "exit"):
        with torch.profiler.profile(**_EVERYTHING) as prof:
            torch.ones(2)
            raises((RuntimeError, KeyError), lambda what=what: list(_loader(7, what, timeout=20)))
            torch.zeros(2)
        assert {"aten::ones", "aten::zeros"} <= {event.name for event in prof.events()}, what
    check_recorder()
    assert not multiprocessing.active_children()


@case(seconds=90)
def a_loop_that_is_left(directory: pathlib.Path) -> None:
    """Leaving a loop over a loader early, or by an error, ends its workers."""
    import mindtorch_v2 as torch

    with torch.profiler.profile(**_EVERYTHING) as prof:
        for batch in _loader():
            assert batch.shape == (2, 2)
            break
        try:
            for _ in _loader(persistent_workers=True):
                raise ValueError("on purpose")
        except ValueError:
            pass
    assert prof.events()
    import gc

    gc.collect()
    end = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.05)
    assert not multiprocessing.active_children()


@case(seconds=90)
def a_recording_that_ends_before_its_workers(directory: pathlib.Path) -> None:
    """Recordings may begin and end anywhere in the life of a loader's workers."""
    import mindtorch_v2 as torch

    loader = iter(_loader())
    next(loader)
    with torch.profiler.profile(**_EVERYTHING):
        next(loader)
    next(loader)
    prof = torch.profiler.profile()
    prof.start()
    rest = list(loader)
    prof.stop()
    assert len(rest) == 5
    check_recorder()


@case(seconds=90)
def spawned_workers(directory: pathlib.Path) -> None:
    """Workers that are spawned rather than forked are recorded, and end."""
    import mindtorch_v2 as torch

    with torch.profiler.profile() as prof:
        assert len(list(_loader(multiprocessing_context="spawn"))) == 8
    assert any("DataLoader" in event.name for event in prof.events())


_PROGRAM = """
import signal, sys, time
import mindtorch_v2 as torch
prof = torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True)
x = torch.ones(8, requires_grad=True)
print("ready", flush=True)
try:
    while True:
        with prof:
            (x * x).sum().backward()
        prof.export_chrome_trace(sys.argv[1])
except KeyboardInterrupt:
    pass
assert not torch.autograd._profiler_enabled(), "still on"
with torch.profiler.profile() as after:
    torch.ones(2) + 1
assert {"aten::ones", "aten::add"} <= {event.name for event in after.events()}, "empty"
after.export_chrome_trace(sys.argv[1])
print("sound", flush=True)
"""


@case(seconds=180, quick=False)
def ctrl_c_at_any_moment(directory: pathlib.Path) -> None:
    """A program that is interrupted at a random moment of recording or exporting can go on and record again."""
    import json
    import random

    chance = random.Random(5)
    for number in range(12):
        path = directory / "t.json"
        process = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(path)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05 + chance.random() * 0.15)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()  # a lost interrupt is a program that does not end
        assert output == "sound\n", f"at {number}: {errors[-3000:]}"
        assert json.loads(path.read_text())["traceEvents"]
        assert [item.name for item in directory.iterdir()] == ["t.json"], list(directory.iterdir())


@case(seconds=400, quick=False)
def ctrl_c_at_each_place(directory: pathlib.Path) -> None:
    """An interrupt at any line or function of recording and exporting comes out as it is, and ends the recording."""
    import warnings
    from types import FrameType

    import mindtorch_v2 as torch

    def run() -> None:
        with prof:
            (x * x).sum().backward()
        prof.export_chrome_trace(directory / "t.json")

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event not in ("line", "call"):
            return trace
        place = (event, frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        if place not in tried and place[1] != __file__:
            tried.add(place)
            hit.append(place)
            sys.settrace(None)
            raise KeyboardInterrupt(place)
        return trace

    warnings.simplefilter("ignore")
    x = torch.ones(8, requires_grad=True)
    tried: set[tuple[str, str, int, str]] = set()
    hit: list[tuple[str, str, int, str]] = []
    lost, wrong, on = [], [], []
    while True:
        prof = torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True)
        run()  # so that there is an earlier recording, which ends in the next one
        hit.clear()
        sys.settrace(trace)
        try:
            run()
            if hit:
                lost.append(hit[-1])
        except KeyboardInterrupt:
            if torch.autograd._profiler_enabled():
                on.append(hit[-1])
        except BaseException as error:
            wrong.append((hit[-1], error))
        finally:
            sys.settrace(None)
        torch.set_grad_enabled(True)  # a line between a change and its `try`: signals do not come there
        if not hit:
            break
    assert len(tried) > 1000, tried
    assert not lost, lost
    assert not wrong, wrong
    assert not on, on
    check_recorder()


@case(seconds=90, quick=False)
def signal_handlers_that_record(directory: pathlib.Path) -> None:
    """A signal handler that runs ops, scopes and recordings of its own does not spoil the one it interrupts."""
    import mindtorch_v2 as torch

    count = 0

    def handle(number: int, frame: Any) -> None:
        nonlocal count
        count += 1
        with torch.profiler.record_function("handler"), torch.profiler.profile():
            torch.ones(1)

    with torch.profiler.profile(**_EVERYTHING) as prof:  # so that nothing is imported in the handler
        (torch.ones(3, requires_grad=True) * 2).sum().backward()
    prof.events()
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for _ in range(60):
            with torch.profiler.profile(**_EVERYTHING) as prof:
                (torch.ones(3, requires_grad=True) * 2).sum().backward()
            assert {"aten::ones", "aten::mul", "MulBackward0"} <= {event.name for event in prof.events()}
            assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert count > 10, count
    check_recorder()


@case(seconds=90)
def a_program_that_ends_inside(directory: pathlib.Path) -> None:
    """A program that ends, by exit, error or atexit, inside a recording ends as it would without."""
    for ending, code in (("sys.exit(3)", 3), ("raise ValueError", 1), ("os._exit(4)", 4), ("pass", 0)):
        program = (f"import os, sys, mindtorch_v2 as torch\np = torch.profiler.profile(with_stack=True, "
                   f"profile_memory=True, record_shapes=True)\np.start()\nx = torch.ones(3) + 1\n{ending}\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, (ending, done.returncode, done.stderr[-400:])
        assert "Fatal" not in done.stderr, done.stderr


@case(seconds=90)
def pools_of_processes(directory: pathlib.Path) -> None:
    """Pools that start, fail and are terminated inside a recording leave it whole."""
    import concurrent.futures

    import mindtorch_v2 as torch

    with torch.profiler.profile(**_EVERYTHING) as prof:
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            assert pool.submit(_square, 3).result(60) == 9
            raises(ZeroDivisionError, lambda: pool.submit(_divide, 0).result(60))
        with multiprocessing.get_context("fork").Pool(2) as old:
            assert old.map(_square, range(4)) == [0, 1, 4, 9]
        torch.ones(2)
    assert any(event.name == "aten::ones" for event in prof.events())
    check_recorder()


def _square(number: int) -> int:
    import mindtorch_v2 as torch

    return int((torch.ones(1) * number).pow(2).item())


def _divide(number: int) -> float:
    return 1 / number


@case()
def a_fork_while_a_recording_is_saved(directory: pathlib.Path) -> None:
    """A child that is forked while `save_to` writes, and stops, drops or ends the recording, leaves the file alone."""
    import mindtorch_v2 as torch
    import mtprof

    for number, ending in enumerate(("stop", "drop", "exit")):
        path = directory / f"{number}.mtp"
        prof = torch.profiler.profile(save_to=path)
        prof.start()
        torch.ones(2)
        child = os.fork()
        if not child:
            code = 0
            try:
                torch.full((2,), 1.0)
                if ending == "stop":
                    prof.stop()
                elif ending == "drop":
                    del prof
            except BaseException:
                traceback.print_exc()
                code = 1
            if ending == "exit":
                sys.exit(code)
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0, ending
        torch.zeros(2)
        prof.stop()
        names = [event.name for event in mtprof.load(path).events()]
        assert "aten::zeros" in names, (ending, names)
        assert "aten::ones" in names, (ending, names)
        assert "aten::full" not in names, (ending, names)
    check_recorder()
