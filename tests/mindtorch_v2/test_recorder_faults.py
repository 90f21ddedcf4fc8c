"""Whatever fails while a recording starts, runs or stops: the recorder is off afterwards, and the next recording whole.

Which twin records is decided at import, so every case runs in a process of its own, forked from one with that twin.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import Forks

import mindtorch_v2 as torch
from length import LONG
from mindtorch_v2._dispatch import native

HERE = Path(__file__).parent
SOURCE = Path(torch.__file__).parent.parent
needs_native = pytest.mark.skipif(native.load("") is None, reason="the C extension is not built: make native")


@pytest.fixture(params=["python", pytest.param("native", marks=needs_native)])
def twin(request):
    return request.param


FORKS: dict[tuple[str, ...], Forks] = {}


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    yield
    while FORKS:
        FORKS.popitem()[1].close()


def run(twin: str, program: str, timeout: float = 300, malloc: str = "default") -> str:
    """What a program prints; a crash, an error or a wait without end fails the test."""
    if (twin, malloc) not in FORKS:
        FORKS[twin, malloc] = Forks({**os.environ, "MINDTORCH_NATIVE": "1" if twin == "native" else "0",
                                     "PYTHONMALLOC": malloc, "PYTHONPATH": f"{SOURCE}{os.pathsep}{HERE}"})
    done = FORKS[twin, malloc].run(textwrap.dedent(program), timeout)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


OFF = """
import gc, sys, threading
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, schedule, _KinetoProfile
from mindtorch_v2._dispatch.module_flag import Flag
from mindtorch_v2._dispatch.observer import HOOK
from mindtorch_v2._dispatch.state import NEW_THREAD, NOWHERE, STATES
from mindtorch_v2.profiler.profiler_state import RUNNING
from mindtorch_v2.profiler.recorder import Recorder
from mindtorch_v2.profiler.recorder.recorder import ACTIVE
from mindtorch_v2.profiler.sources.memory import MEMORY
from mindtorch_v2.profiler.sources.processes import Children

def left_on():
    '''What of a recording is still on.'''
    found = [key for key in ("OBSERVING", "DESCRIBE", "ALLOCATED", "USES", "STEPPED", "CALLS", "MOVED", "FAILED", "TAP")
             if HOOK[key]]
    if Recorder.running is not None: found.append("running")
    if NEW_THREAD[0] is not None: found.append("new threads")
    if any(state.events is not NOWHERE for state in STATES): found.append("buffers")
    if Flag.watch is not None or Flag.raised: found.append("modules")
    if RUNNING: found.append("RUNNING")
    if list(ACTIVE): found.append("ACTIVE")
    if Children.recordings or len(Children.expecting): found.append("children")
    if any(type(f).__module__.startswith("mindtorch") or "mindtorch" in str(getattr(f, "__module__", ""))
           for f in gc.callbacks): found.append("collections")
    if sys.getprofile() is not None or threading.getprofile() is not None: found.append("profile function")
    if sys.version_info >= (3, 12) and any("mindtorch" in str(sys.monitoring.get_tool(i)) for i in range(6)):
        found.append("monitoring")
    if Recorder.lock._is_owned() or Children.lock._is_owned(): found.append("lock")
    return found

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def work():
    with record_function("mine"):
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

ALL = dict(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True, with_flops=True,
           experimental_config=torch.profiler._ExperimentalConfig(record_python_gc_info=True))
work()

def facts(prof):
    '''What a recording of `work` has.'''
    trace, found = prof.trace, [e.name for e in prof.events()]
    names = sorted(name for name in found if "(" not in name and name != "Python GC")
    return (names, len(trace.memory["row"]), len(trace.uses["row"]),
            sorted({name for name in found if "work" in name}), len(trace.modules["path"]))

def whole():
    optimizer.zero_grad()  # an interrupted step may have left gradients
    gc.collect()
    with profile(**ALL) as prof:
        work()
    return facts(prof)
"""


INTERRUPTS = OFF + """
import sys
from interrupting import interrupted_everywhere
import warnings
warnings.simplefilter("ignore")

def plain():
    with profile(**ALL):
        work()

def steps():
    with profile(schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=lambda prof: None, **ALL) as prof:
        for _ in range(3):
            work()
            prof.step()

def by_hand():
    prof = _KinetoProfile(with_stack=True)
    prof.start()
    work()
    prof.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
    prof.toggle_collection_dynamic(True, [torch.profiler.ProfilerActivity.CPU])
    prof.stop()

whole(); plain(); steps(); by_hand()
expected = whole()
assert expected[3] and expected[1] and expected[2]
gc.collect()
gc.freeze()  # else a collection goes through the whole package, which is most of the time
for run in (plain, steps, by_hand):
    places = 0
    for place in interrupted_everywhere(run, "mindtorch_v2/profiler/", "mindtorch_v2/_dispatch/", below=(
            "profiler/profiler.py", "profiler/session.py", "recorder/recorder.py"), step=ONE_IN):
        places += 1
        found = left_on()
        if found or whole() != expected or left_on():
            sys.exit(f"{run.__name__} at {place}: {found} is left on, or the next recording is not whole")
    print(places)
"""


def test_interrupted_at_every_line(twin):
    # All of the lines take a minute or two: `make faults` tries them all, other runs one in so many.
    step = os.environ.get("MINDTORCH_INTERRUPTS_STEP", "29" if LONG else "223")
    output = run(twin, INTERRUPTS.replace("ONE_IN", step), timeout=1500)
    assert all(int(places) > 1500 / int(step) for places in output.split())


def test_error_that_outlives_its_thread(twin):
    """A stretch without noted calls ends with its function, not when the last traceback of it is freed."""
    output = run(twin, """
        import gc
        from concurrent.futures import ThreadPoolExecutor
        import mindtorch_v2 as torch

        def fails():
            y = torch.ones(3, requires_grad=True).exp()
            y.add_(1)
            y.sum().backward()

        def later():
            return helper()

        def helper():
            return torch.ones(2)

        class Fails(torch.nn.Module):
            def forward(self, x):
                raise ValueError("in a module")

        def fails_in_a_module():
            Fails()(1)

        with torch.profiler.profile(with_stack=True) as prof:
            with ThreadPoolExecutor(1) as pool:
                kept = [pool.submit(fails), pool.submit(fails_in_a_module)]
                assert all(future.exception() is not None for future in kept)
                pool.submit(later).result()
        assert {e.name.split(": ")[1] for e in prof.events() if ": " in e.name} >= {"later", "helper"}
        del kept
        gc.collect()
        print("alive")
        """, malloc="debug")
    assert output == "alive"


def test_lists_that_contain_themselves(twin):
    output = run(twin, """
        import mindtorch_v2 as torch
        looped = [torch.ones(2)]
        looped.append(looped)
        for options in ({}, {"record_shapes": True}, {"record_shapes": True, "profile_memory": True}):
            with torch.profiler.profile(**options):
                for function in (torch.cat, torch.stack):
                    try:
                        function(looped)
                    except TypeError:
                        print("TypeError")
        """)
    assert output.split() == ["TypeError"] * 6


@pytest.mark.parametrize("use", ["torch.nn.Linear(3, 2)", "torch.optim.SGD", "torch.nn.functional.relu",
                                 "torch.fft.fft", "torch.distributions.Normal"])
def test_first_use_of_a_part_under_stacks(twin, use):
    run(twin, f"""
        import mindtorch_v2 as torch
        with torch.profiler.profile(with_stack=True) as prof:
            {use}
        prof.events()
        """)


def test_dropped_profilers_end(twin):
    output = run(twin, OFF + """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    prof = profile(**ALL)
    prof.start()
    work()
    assert left_on()
    del prof
    gc.collect()
    prof = profile(schedule=schedule(wait=0, warmup=1, active=2), on_trace_ready=lambda p: prof, **ALL)
    prof.start()
    prof.step()
    prof = None
    gc.collect()
assert len([w for w in caught if "dropped while it recorded" in str(w.message)]) == 2, caught
assert left_on() == [], left_on()
assert whole()[3]
print("off")
""")
    assert output == "off"


def test_a_source_that_fails(twin):
    """An error in one source reaches the user; the others keep their results, and all stop."""
    output = run(twin, OFF + """
from mindtorch_v2.profiler.recorder.running import Running
expected = whole()
names = [source.name for source in Running().sources]
for name in names:
    for method in ("start", "stop", "take", "mark"):
        kind = type(getattr(Running(), name))
        before = getattr(kind, method)
        def fails(self, *args, before=before if method == "stop" else lambda *args: None):
            before(self, *args)
            raise ZeroDivisionError(name)
        setattr(kind, method, fails)
        try:
            with profile(**ALL) as prof:
                work()
        except ZeroDivisionError:
            pass
        else:
            raise AssertionError((name, method, "no error"))
        finally:
            setattr(kind, method, before)
        assert left_on() == [], (name, method, left_on())
        assert whole() == expected, (name, method)
        assert left_on() == [], (name, method, left_on())
print("whole")
""")
    assert output == "whole"


def test_a_scope_that_two_recordings_see(twin):
    output = run(twin, """
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile, record_function
        left = record_function("left open")
        with profile() as first:
            left.__enter__()
            torch.ones(2)
        with profile() as second:
            torch.ones(3)
            left.__exit__(None, None, None)
        print([e.name for e in first.events()], [e.name for e in second.events()])
        assert min(e.time_range.start for e in second.events()) >= 0
        """)
    assert "left open" in output.split("] [")[0]
    assert "left open" not in output.split("] [")[1]


def test_a_clock_that_goes_back():
    """Only Python's clock can be changed; the columns of both twins are made the same way."""
    run("python", """
        import itertools, time
        ticks = itertools.cycle([1_000_000, 900_000, 1_100_000, 800_000])
        begin = time.perf_counter_ns()
        import mindtorch_v2._dispatch.observer as observer
        import mindtorch_v2 as torch
        clock = lambda: time.perf_counter_ns() + next(ticks)
        observer.HOOK["clock"] = clock
        observer.perf_counter_ns = clock
        with torch.profiler.profile() as prof:
            for _ in range(20):
                torch.ones(2).add(1)
        durations = [e.time_range.elapsed_us() for e in prof.events()]
        assert durations and min(durations) >= 0, durations
        """)


def test_threads_call_modules_for_the_first_time_while_it_stops(twin):
    output = run(twin, OFF + """
stop = threading.Event()
failed = []
def calls():
    while not stop.is_set():
        try:
            torch.nn.Sequential(torch.nn.Identity())(1)
        except Exception as error:
            failed.append(error)
        stop.wait(1e-4)
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=calls, daemon=True) for _ in range(2)]
for thread in threads: thread.start()
for _ in range(4):
    with profile(**ALL) as prof:
        work()
    assert "mine" in prof.trace.names
stop.set()
for thread in threads: thread.join()
assert not failed, failed
assert left_on() == [], left_on()
print("whole")
""")
    assert output == "whole"


def test_code_that_answers_for_ops_is_in_stacks(twin):
    """Bodies of `__torch_function__` and `__torch_dispatch__`, which run instead of ops."""
    output = run(twin, """
        from collections import Counter
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile
        from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

        class Sub(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return in_function(super(), func, types, args, kwargs)

        def in_function(parent, func, types, args, kwargs):
            return parent.__torch_function__(func, types, args, kwargs or {})

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return in_dispatch(func, args, kwargs)

        def in_dispatch(func, args, kwargs):
            return func(*args, **(kwargs or {}))

        class Other:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return in_other()

        def in_other():
            return 5

        def after():
            return 1

        x = torch.ones(2).as_subclass(Sub)
        with profile(with_stack=True) as prof:
            x + 1
            torch.add(x, x)
            after()
            with Mode():
                torch.ones(2) * 2
            torch.add(torch.ones(2), Other())
            after()
        found = Counter(e.name.split(": ")[1] for e in prof.events() if ": " in e.name)
        print([found[name] for name in ("in_function", "in_dispatch", "in_other", "after")])
        """)
    assert output == "[2, 2, 1, 2]"


def test_lines_of_the_program(twin):
    output = run(twin, """
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile, record_function
        layer = torch.nn.Linear(3, 3)
        def program():
            a = torch.ones(2, 3)
            b = a * 2
            with record_function("mine"):
                c = layer(b)
            d = torch.relu(
                c).sum()
            d.backward()
            return [x.exp() for x in c]
        first = program.__code__.co_firstlineno
        with profile(with_stack=True, profile_memory=True) as prof:
            program()
        trace = prof.trace
        # The first event of each name: the backward has some of the same.
        rows = zip(*(trace.events[column].tolist()[::-1] for column in ("name", "line", "kind")))
        lines = {trace.names[n]: line - first for n, line, kind in rows if kind not in (5, 6)}
        assert {e.name: e.line - first for e in reversed(prof.events()) if not e.is_python_function and e.line} \
            .items() <= lines.items()
        print([lines[name] for name in ("aten::ones", "aten::fill_", "aten::mul", "mine", "aten::linear", "aten::relu",
                                        "aten::sum", "AddmmBackward0", "aten::exp")])
        print((trace.memory["line"][:2] - first).tolist(), bool((trace.events["sequence"] < 1000).all()))
        """)
    assert output.splitlines() == ["[1, 1, 2, 3, 4, 5, 6, 7, 8]", "[1, 2] True"]
