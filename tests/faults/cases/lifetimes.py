"""Ends at the wrong moment: of threads, generators, tasks, objects, scopes, the interpreter."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import pathlib
import subprocess
import sys
import threading
import warnings
import weakref
from typing import Any

from ..registry import ANY, case
from ..tools import check_recorder, raises

_EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}


def _names(prof: Any) -> set[str]:
    return {event.name for event in prof.events()}


def _on_a_thread(function: Any) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


@case()
def started_here_and_stopped_there(directory: pathlib.Path) -> None:
    """A recording may be started by a thread that has ended when another one stops it."""
    import mindtorch_v2 as torch

    prof = torch.profiler.profile(**_EVERYTHING)
    _on_a_thread(prof.start)
    torch.ones(2)
    _on_a_thread(lambda: torch.arange(3))
    _on_a_thread(prof.stop)
    assert {"aten::ones", "aten::arange"} <= _names(prof)
    prof = torch.profiler.profile(**_EVERYTHING)
    prof.start()
    torch.ones(2)
    _on_a_thread(prof.stop)
    assert "aten::ones" in _names(prof)
    assert sys.getprofile() is None or sys.getprofile().__class__.__module__.startswith("mindtorch")
    len([1])
    _on_a_thread(check_recorder)
    check_recorder()


@case(quick=False)
def stopped_by_many_at_once(directory: pathlib.Path) -> None:
    """Threads that all stop, step or toggle one recording at the same moment leave it whole and off."""
    import mindtorch_v2 as torch

    sys.setswitchinterval(1e-6)
    for _ in range(15):
        prof = torch.profiler.profile(**_EVERYTHING)
        prof.start()
        torch.ones(2)
        gate = threading.Barrier(4)

        def end(prof: Any = prof, gate: Any = gate) -> None:
            gate.wait()
            try:
                prof.step()
                prof.stop()
            except (RuntimeError, AssertionError):
                return

        threads = [threading.Thread(target=end) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not torch.autograd._profiler_enabled()
        assert "aten::ones" in _names(prof)
    sys.setswitchinterval(0.005)
    check_recorder()


@case()
def threads_with_strange_names(directory: pathlib.Path) -> None:
    """Threads with any name, raw threads without an object and threads that end at once are in sound files."""
    import _thread
    import json

    import mindtorch_v2 as torch

    def work() -> None:
        torch.ones(1)

    with torch.profiler.profile(**_EVERYTHING) as prof:
        for name in ("\ud800", "\0", "", "x" * 100_000, 'a"b\\\n', "日本"):
            thread = threading.Thread(target=work, name=name)
            thread.start()
            thread.join()
        threading.current_thread().name = 5  # type: ignore[assignment]
        done = threading.Event()
        _thread.start_new_thread(lambda: (work(), done.set()), ())
        done.wait()
        for _ in range(200):
            threading.Thread(target=work).start()
    assert sum(event.name == "aten::ones" for event in prof.events()) >= 7
    prof.export_chrome_trace(directory / "t.json")
    assert json.loads((directory / "t.json").read_bytes())["traceEvents"]
    prof.save(directory / "t.mtp")
    assert len(torch.profiler.load(directory / "t.mtp").events()) == len(prof.events())
    prof.key_averages().table()
    check_recorder()


@case()
def a_profiler_inside_a_generator(directory: pathlib.Path) -> None:
    """A generator that is dropped, closed or thrown into ends the recording that it has begun."""
    import mindtorch_v2 as torch

    def record(kept: list[Any]) -> Any:
        with torch.profiler.profile(**_EVERYTHING) as prof:
            kept.append(prof)
            with torch.profiler.record_function("inside"):
                yield torch.ones(2)
                yield torch.zeros(2)

    for end in (lambda one: one.close(), lambda one: None, lambda one: raises(KeyError, lambda: one.throw(KeyError))):
        kept: list[Any] = []
        generator = record(kept)
        next(generator)
        end(generator)
        del generator
        gc.collect()
        assert not torch.autograd._profiler_enabled()
        assert {"inside", "aten::ones"} <= _names(kept[0])
    loop = record([])
    next(loop)
    _on_a_thread(loop.close)
    check_recorder()


@case()
def tasks_that_are_cancelled(directory: pathlib.Path) -> None:
    """Tasks that are cancelled, time out or are handed to other threads inside recordings and scopes end them."""
    import mindtorch_v2 as torch

    async def forever(name: str) -> None:
        with torch.profiler.record_function(name):
            while True:
                torch.ones(1)
                await asyncio.sleep(0)

    async def recorded() -> None:
        with torch.profiler.profile(**_EVERYTHING):
            await forever("inner")

    async def stream() -> Any:
        with torch.profiler.record_function("stream"):
            while True:
                yield torch.ones(1)

    async def main() -> None:
        tasks = [asyncio.create_task(forever(f"task {number}")) for number in range(3)]
        tasks.append(asyncio.create_task(recorded()))
        for _ in range(5):
            await asyncio.sleep(0)
        raises_timeout = asyncio.wait_for(forever("timed"), 0.01)
        with contextlib.suppress(asyncio.TimeoutError):
            await raises_timeout
        await asyncio.to_thread(lambda: torch.arange(3))
        async for _ in stream():
            break
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with torch.profiler.profile(**_EVERYTHING) as prof:
        asyncio.run(main())
    assert {"task 0", "task 2", "inner", "timed", "stream", "aten::arange"} <= _names(prof)
    assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    check_recorder()


@case()
def scopes_around_generators_and_coroutines(directory: pathlib.Path) -> None:
    """`record_function` decorates generators, coroutines, methods and itself without changing what they do."""
    import mindtorch_v2 as torch

    scope = torch.profiler.record_function("decorated")

    @scope
    def items() -> Any:
        yield 1
        return 2

    @scope
    async def later() -> int:
        return 3

    @scope
    @scope
    def again(depth: int) -> int:
        return depth if depth == 3 else again(depth + 1)

    class Holder:
        @scope
        def method(self) -> Any:
            return self

        @classmethod
        @scope
        def of_class(cls) -> Any:
            return cls

    holder = Holder()
    with torch.profiler.profile(**_EVERYTHING) as prof:
        assert list(items()) == [1]
        assert asyncio.run(later()) == 3
        assert again(0) == 3
        assert holder.method() is holder and Holder.of_class() is Holder
        with scope, scope:  # used twice: as in PyTorch, the last one counts
            torch.ones(2)
    # Of the trace: as in PyTorch, the list of events leaves out an only child of its parent's name.
    assert [prof.trace.names[name] for name in prof.trace.events["name"]].count("decorated") >= 13
    assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    check_recorder()


@case()
def collections_in_the_middle(directory: pathlib.Path) -> None:
    """A garbage collection at every allocation, with finalizers that run ops and scopes, spoils no recording."""
    import mindtorch_v2 as torch

    class Loud:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            with torch.profiler.record_function("finalizer"):
                torch.ones(1) + 1

    model = torch.nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    gc.collect()
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for options in ({}, _EVERYTHING):
            for _ in range(3):
                prof = torch.profiler.profile(**options)
                Loud()
                prof.start()
                Loud()
                model(torch.ones(1, 2)).sum().backward()
                gc.collect()  # the one before is old by now
                Loud()
                prof.stop()
                assert {"aten::linear", "AddmmBackward0", "finalizer"} <= _names(prof)
                assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    finally:
        gc.set_threshold(*before)
    check_recorder()


@case()
def weak_references_that_look(directory: pathlib.Path) -> None:
    """Callbacks of weak references to profilers, tensors and modules that run ops and recordings do no harm."""
    import mindtorch_v2 as torch

    heard: list[str] = []

    def look(name: str) -> Any:
        def call(reference: Any) -> None:
            heard.append(name)
            torch.ones(1)
            with torch.profiler.profile():
                torch.arange(2)

        return call

    references: list[Any] = []
    for _ in range(5):
        with torch.profiler.profile(**_EVERYTHING) as prof:
            model, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
            references += [weakref.ref(model, look("model")), weakref.ref(x, look("tensor")),
                           weakref.ref(prof, look("profiler"))]
            model(x).sum().backward()
            del model, x
            gc.collect()
        assert "aten::linear" in _names(prof)
        del prof
    gc.collect()
    assert {"tensor", "profiler"} <= set(heard), heard
    check_recorder()


@case()
def a_profiler_that_comes_back(directory: pathlib.Path) -> None:
    """A profiler that is brought back by a finalizer after it was dropped is over, and can be stopped."""
    import mindtorch_v2 as torch

    back: list[Any] = []

    class Keeper:
        def __init__(self, prof: Any) -> None:
            self.prof, self.me = prof, self

        def __del__(self) -> None:
            back.append(self.prof)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prof = torch.profiler.profile(**_EVERYTHING)
        prof.start()
        keeper = Keeper(prof)
        del prof, keeper
        gc.collect()
        assert back
        torch.ones(2)
        try:
            back[0].stop()
        except (RuntimeError, AssertionError):
            assert not torch.autograd._profiler_enabled()
        back.clear()
        gc.collect()
    check_recorder()


@case(seconds=90)
def the_end_of_the_interpreter(directory: pathlib.Path) -> None:
    """Recordings that begin, run or end while the interpreter ends do not change how it ends."""
    begin = """
import atexit, gc, sys, threading, mindtorch_v2 as torch
P = dict(with_stack=True, profile_memory=True, record_shapes=True, with_modules=True)
p = torch.profiler.profile(**P)
"""
    programs = {
        "at exit": """
def late():
    with p: torch.ones(2)
    print(len(p.events()) > 0)
atexit.register(late)
""",
        "open until exit": """
p.start()
atexit.register(lambda: (p.stop(), print(len(p.events()) > 0)))
torch.ones(2)
""",
        "an object of a module": """
class Late:
    def __del__(self, torch=torch): torch.ones(2) + 1
late = Late()
p.start()
print(True)
""",
        "a cycle": """
p.start()
class Late:
    def __del__(self, p=p): p.stop()
late = Late(); late.me = late
print(True)
""",
        "threads": """
def work():
    for _ in range(300): torch.ones(2) + 1
p.start()
for _ in range(3): threading.Thread(target=work).start()
print(True)
""",
        "a scope": """
p.start()
torch.profiler.record_function("open").__enter__()
print(True)
""",
        "a saver": """
p = torch.profiler.profile(save_to=sys.argv[1])
p.start()
torch.ones(2)
print(True)
""",
    }
    for name, program in programs.items():
        done = subprocess.run([sys.executable, "-c", begin + program, str(directory / "t.mtp")], capture_output=True,
                              text=True)
        assert done.returncode == 0, (name, done.stderr[-800:])
        assert done.stdout == "True\n", (name, done.stdout, done.stderr[-800:])
        assert "Traceback" not in done.stderr, (name, done.stderr[-800:])


@case(recorders=ANY)
def a_file_that_grows_and_its_process_dies(directory: pathlib.Path) -> None:
    """What `save_to` has written is there when the process is killed."""
    import signal
    import time

    import mindtorch_v2 as torch

    path = directory / "t.mtp"
    program = ("import sys, time, mindtorch_v2 as torch\np = torch.profiler.profile(save_to=sys.argv[1])\np.start()\n"
               "print('ready', flush=True)\nwhile True:\n    torch.ones(2) + 1\n    time.sleep(0.001)\n")
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file has no end
        while True:  # until something has been written whole
            time.sleep(0.05)
            assert process.poll() is None
            try:
                seen = len(torch.profiler.load(path).events())
            except ValueError:
                continue
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = torch.profiler.load(path)
    assert len(found.events()) >= seen > 0
    assert "aten::add" in _names(found)
