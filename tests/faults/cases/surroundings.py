"""The program around a recording: its profile functions, signals, descriptors, directory, locale and limits."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from typing import Any

from ..registry import ANY, case
from ..tools import check_recorder, raises

_EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}
_OPTIONS: tuple[dict[str, Any], ...] = ({}, _EVERYTHING)


def _names(prof: Any) -> set[str]:
    return {event.name for event in prof.events()}


@case()
def profile_functions_that_change_inside(directory: pathlib.Path) -> None:
    """A program may set, replace or remove profile and trace functions inside a recording: what it set last stays."""
    import mindtorch_v2 as torch

    def mine(frame: Any, event: str, argument: Any) -> Any:
        return None

    for setter, getter in ((sys.setprofile, sys.getprofile), (sys.settrace, sys.gettrace),
                           (threading.setprofile, threading.getprofile), (threading.settrace, threading.gettrace)):
        for value in (mine, None):
            with torch.profiler.profile(**_EVERYTHING) as prof:
                torch.ones(2)
                setter(value)
                torch.zeros(2)
            left = getter()
            sys.setprofile(None)
            sys.settrace(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            threading.settrace(None)  # type: ignore[arg-type]
            assert left is value, (setter, value, left)
            assert {"aten::ones", "aten::zeros"} <= _names(prof)
    check_recorder()


@case()
def trace_functions_that_fail(directory: pathlib.Path) -> None:
    """An error of a program's own trace function inside start, stop and ops comes out; the recorder is sound."""
    import mindtorch_v2 as torch

    for number in range(0, 400, 7):
        left = [number]

        def fail(frame: Any, event: str, argument: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise ZeroDivisionError("on purpose")
            return fail

        sys.settrace(fail)
        try:
            with torch.profiler.profile(**_EVERYTHING):
                torch.ones(2)
        except ZeroDivisionError:
            pass
        finally:
            sys.settrace(None)
        assert not torch.autograd._profiler_enabled(), number
    check_recorder()


@case()
def tools_of_the_standard_library(directory: pathlib.Path) -> None:
    """cProfile, trace, tracemalloc, faulthandler and dis inside and around recordings work, and so do they."""
    import cProfile
    import dis
    import faulthandler
    import io
    import pstats
    import trace
    import tracemalloc

    import mindtorch_v2 as torch

    def work() -> Any:
        return torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()

    def recorded() -> None:
        with torch.profiler.profile(**_EVERYTHING) as prof:
            work()
        assert "aten::linear" in _names(prof)

    cProfile.Profile().runcall(recorded)
    with torch.profiler.profile(**_EVERYTHING) as prof:
        other = cProfile.Profile()
        other.runcall(work)
        torch.arange(2)
    assert {"aten::linear", "aten::arange"} <= _names(prof)
    pstats.Stats(other, stream=io.StringIO()).print_stats()
    trace.Trace(count=1, trace=0).runfunc(recorded)
    tracemalloc.start(5)
    recorded()
    tracemalloc.stop()
    with torch.profiler.profile(**_EVERYTHING), open(directory / "f", "w") as file:
        faulthandler.dump_traceback(file)
        dis.dis(work, file=file)
    check_recorder()


@case(seconds=120, quick=False)
def alarms_that_raise(directory: pathlib.Path) -> None:
    """A signal handler that raises any error at any moment, as time limits do, leaves a sound recorder."""
    import mindtorch_v2 as torch

    class TooLate(Exception):
        pass

    def handle(number: int, frame: Any) -> None:
        raise TooLate

    def work() -> None:
        with torch.profiler.profile(**_EVERYTHING):
            (torch.ones(3, requires_grad=True) * 2).sum().backward()

    work()
    signal.signal(signal.SIGALRM, handle)
    heard = 0
    for number in range(150):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + number % 37 * 0.0002)
            for _ in range(200):
                work()
        except TooLate:
            heard += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert not torch.autograd._profiler_enabled(), number
    assert heard > 75, heard
    check_recorder()


@case(seconds=120, quick=False)
def interrupts_are_not_lost(directory: pathlib.Path) -> None:
    """Ctrl-C during ops, recordings and their ends is KeyboardInterrupt in the program: nothing of ours swallows it."""
    import mindtorch_v2 as torch

    def work() -> None:
        with torch.profiler.profile(**_EVERYTHING):
            for _ in range(3):
                (torch.ones(3, requires_grad=True) * 2).sum().backward()

    lost: list[Any] = []
    sys.unraisablehook = lost.append
    work()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for number in range(120):
        known = len(lost)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + number * 37 % 101 * 0.0001)
            while len(lost) == known:
                work()
        except KeyboardInterrupt:
            pass
        assert not torch.autograd._profiler_enabled(), number
    # Python drops what falls into a finalizer, and a profiler has one.
    assert len(lost) <= 2, lost
    check_recorder()


@case()
def standard_streams_that_are_closed(directory: pathlib.Path) -> None:
    """A program without standard streams records, exports and drops profilers."""
    program = """
import gc, os, sys
for stream in (0, 1, 2):
    os.close(stream)
sys.stdin = sys.stdout = sys.stderr = None
import mindtorch_v2 as torch
with torch.profiler.profile(with_stack=True, profile_memory=True, record_shapes=True) as prof:
    torch.ones(2) + 1
prof.export_chrome_trace(sys.argv[1])
prof = torch.profiler.profile()
prof.start()
del prof
gc.collect()
os._exit(0 if not torch.autograd._profiler_enabled() else 9)
"""
    path = directory / "t.json"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True)
    assert done.returncode == 0, done
    assert json.loads(path.read_bytes())["traceEvents"]


@case(recorders=ANY)
def no_more_descriptors(directory: pathlib.Path) -> None:
    """When no file can be opened, exports say so, and work again afterwards."""
    import mindtorch_v2 as torch

    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        torch.ones(2) + 1
    prof.export_chrome_trace(directory / "first.json")
    prof.save(directory / "first.mtp")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), hard))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for name, export in (("t.json", prof.export_chrome_trace), ("t.json.gz", prof.export_chrome_trace),
                         ("t.mtp", prof.save), ("s.txt", lambda path: prof.export_stacks(str(path)))):
        raises(OSError, lambda export=export, name=name: export(directory / name), name)
    raises(OSError, lambda: torch.save(torch.ones(1), directory / "c.pt"))
    with torch.profiler.profile(**_EVERYTHING) as inner:
        torch.arange(3)
    assert "aten::arange" in _names(inner)
    for number in taken:
        os.close(number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sorted(path.name for path in directory.iterdir()) == ["first.json", "first.mtp"]
    prof.export_chrome_trace(directory / "t.json")


@case(recorders=ANY)
def no_more_threads(directory: pathlib.Path) -> None:
    """When a recording that saves while it runs gets no thread, start() says so and nothing records."""
    import mindtorch_v2 as torch

    def refuse(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    original = threading.Thread.start
    threading.Thread.start = refuse  # type: ignore[method-assign]
    try:
        raises(RuntimeError, lambda: torch.profiler.profile(save_to=directory / "t.mtp").start(), "thread")
    finally:
        threading.Thread.start = original  # type: ignore[method-assign]
    assert not torch.autograd._profiler_enabled()
    check_recorder()


@case(recorders=ANY)
def places_where_nothing_can_be_saved(directory: pathlib.Path) -> None:
    """`save_to` at a place that cannot be written raises at start, or at stop if it is full, and nothing records."""
    import mindtorch_v2 as torch

    (directory / "d.mtp").mkdir()
    for place in (directory / "missing" / "t.mtp", directory / "d.mtp", "/dev/full", "/proc/t.mtp"):
        def use(place: Any = place) -> None:
            with torch.profiler.profile(save_to=place):
                torch.ones(2) + 1

        raises(OSError, use, str(place))
        assert not torch.autograd._profiler_enabled(), place
    path = directory / "t.mtp"
    with torch.profiler.profile(save_to=path):
        torch.ones(2)
        path.unlink()
    assert not torch.autograd._profiler_enabled()
    with torch.profiler.profile(save_to=path) as first, torch.profiler.profile(save_to=directory / "u.mtp") as second:
        torch.ones(2)
    assert "aten::ones" in _names(first) & _names(second)
    check_recorder()


@case()
def a_disk_that_fills_while_saving(directory: pathlib.Path) -> None:
    """When the disk fills while a recording is saved, the program goes on, and stop() says which file."""
    import mindtorch_v2 as torch

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    path = directory / "t.mtp"
    prof = torch.profiler.profile(save_to=path)
    prof.start()
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        for _ in range(200):
            torch.ones(2) + 1
    raises(OSError, prof.stop, "t.mtp")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert not torch.autograd._profiler_enabled()
    check_recorder()


@case(recorders=ANY)
def a_directory_that_goes(directory: pathlib.Path) -> None:
    """The current directory may change, and be gone: relative names are those of the moment of the export."""
    import mindtorch_v2 as torch

    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        torch.ones(2) + 1
    there = directory / "there"
    there.mkdir()
    before = os.getcwd()
    os.chdir(there)
    prof.export_chrome_trace("t.json")
    assert (there / "t.json").exists()
    (there / "t.json").unlink()
    there.rmdir()
    for export in (prof.export_chrome_trace, prof.save, prof.export_stacks, prof.export_memory_timeline):
        raises(OSError, lambda export=export: export("u.json"), "u.json")
    prof.export_chrome_trace(directory / "absolute.json")
    with torch.profiler.profile(**_EVERYTHING) as inner:
        torch.arange(3)
    assert "aten::arange" in _names(inner)
    inner.key_averages().table()
    os.chdir(before)


@case(recorders=ANY)
def a_locale_without_letters(directory: pathlib.Path) -> None:
    """Where text is ASCII by default, files are UTF-8 all the same, and names of any script go in and out."""
    program = """
import json, pathlib, sys, locale
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
assert locale.getpreferredencoding(False).lower() not in ("utf-8", "utf8"), locale.getpreferredencoding(False)
here = pathlib.Path(sys.argv[1])
def 函数():
    return torch.ones(2) + 1
with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
    with record_function("é日本\\ud800"):
        函数()
prof.add_metadata("schlüssel", "wért")
prof.export_chrome_trace(here / "t.json")
prof.export_chrome_trace(here / "t.json.gz")
prof.export_stacks(str(here / "s.txt"))
prof.export_memory_timeline(str(here / "m.html"), "cpu")
prof.export_memory_timeline(str(here / "m.json"), "cpu")
prof.key_averages().export_chrome_trace(str(here / "a.json"))
prof.key_averages().to_csv(here / "a.csv")
prof.events().to_json(here / "e.json")
prof.save(here / "t.mtp")
for name in ("t.json", "t.json.gz", "t.mtp"):
    again = torch.profiler.load(here / name)
    assert any("日本" in event.name for event in again.events()), name
    assert any("函数" in event.name for event in again.events()), name
torch.save({"日本": torch.ones(1)}, here / "c.pt")
assert "日本" in torch.load(here / "c.pt")
prof.key_averages().table()
"""
    path = directory / "program.py"
    path.write_text(program, encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, str(path), str(directory)], capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-1500:]
    assert "日本" in (directory / "t.json").read_text(encoding="utf-8", errors="surrogatepass")


@case()
def code_with_strange_names(directory: pathlib.Path) -> None:
    """Code whose file, name and lines are anything at all is in stacks, files and tables."""
    import mindtorch_v2 as torch

    source = "def work(torch):\n    return torch.ones(2) + 1\n"
    made = []
    codes = (("\ud800.py", "f\ud800", 1), ("", "", 0), ("a;b\nc", "x;y\nz", 2**31 - 1), ("<string>", "<lambda>", 5),
             ("/dev/zero", "g", 7), ("x" * 50_000, "y" * 50_000, 3), ("a: b(3): c", "m(1): n", 1))
    for number, (file, name, line) in enumerate(codes):
        space: dict[str, Any] = {}
        exec(compile(source, f"made {number}", "exec"), space)
        function = space["work"]
        function.__code__ = function.__code__.replace(co_filename=file, co_name=name, co_firstlineno=line)
        made.append(function)
    with torch.profiler.profile(**_EVERYTHING) as prof:
        for function in made:
            function(torch)
    assert sum(event.name == "aten::ones" for event in prof.events()) == len(made)
    prof.export_chrome_trace(directory / "t.json")
    json.loads((directory / "t.json").read_bytes())
    prof.save(directory / "t.mtp")
    for name in ("t.json", "t.mtp"):
        assert len(torch.profiler.load(directory / name).events()) == len(prof.events())
    prof.export_stacks(str(directory / "s.txt"))
    for line in (directory / "s.txt").read_bytes().splitlines():
        assert line.rpartition(b" ")[2].isdigit(), line[-100:]
    prof.key_averages(group_by_stack_n=5).table()
    prof.export_memory_timeline(str(directory / "m.html"), "cpu")
    check_recorder()


@case()
def modules_with_strange_names(directory: pathlib.Path) -> None:
    """Modules whose classes, children and attributes have any name, or refuse questions, are recorded."""
    import mindtorch_v2 as torch

    class Refuses(torch.nn.Linear):
        def __getattr__(self, name: str) -> Any:
            if name in ("_get_name", "extra_repr", "children"):
                raise RuntimeError(name)
            return super().__getattr__(name)

        def __repr__(self) -> str:
            raise RuntimeError("no text")

        def __hash__(self) -> int:
            raise RuntimeError("no hash")

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("not equal")

    strange = type("日 [x]/é.", (torch.nn.Linear,), {})
    model = torch.nn.Sequential(strange(2, 2), torch.nn.Linear(2, 2))
    model.add_module("ü: [0]", torch.nn.ReLU())
    model.add_module("x" * 10_000, torch.nn.ReLU())
    with torch.profiler.profile(**_EVERYTHING) as prof:
        model(torch.ones(1, 2)).sum().backward()
        try:
            Refuses(2, 2)(torch.ones(1, 2))
        except RuntimeError:
            torch.zeros(1)
    prof.module_tree()
    str(prof.module_tree())
    prof.key_averages(group_by_module=True).table()
    prof.export_chrome_trace(directory / "t.json")
    json.loads((directory / "t.json").read_bytes())
    check_recorder()


@case(recorders=ANY)
def a_hundred_thousand_names(directory: pathlib.Path) -> None:
    """Each scope may have a name of its own, and a name may be ten megabytes long."""
    import mindtorch_v2 as torch

    with torch.profiler.profile() as prof:
        for number in range(100_000):
            with torch.profiler.record_function(f"scope {number}"):
                pass
        with torch.profiler.record_function("x" * 10_000_000):
            torch.ones(1)
    assert len(prof.events()) == 100_004 or len(prof.trace) >= 100_001
    prof.key_averages().table(row_limit=3)
    prof.export_chrome_trace(directory / "t.json")
    assert len(torch.profiler.load(directory / "t.json").trace) == len(prof.trace)


@case()
def a_clock_that_stands_still(directory: pathlib.Path) -> None:
    """A clock that does not move, or moves once, gives durations of 0, and files that can be read."""
    program = """
import sys, time
real = time.perf_counter_ns
still = real()
time.perf_counter_ns = lambda: still
import mindtorch_v2 as torch
with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True) as prof:
    with torch.profiler.record_function("outer"):
        torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
assert all(event.time_range.elapsed_us() >= 0 and event.self_cpu_time_total >= 0 for event in prof.events())
prof.key_averages().table()
prof.step_summary()
prof.export_chrome_trace(sys.argv[1] + "/t.json")
assert len(torch.profiler.load(sys.argv[1] + "/t.json").events()) == len(prof.events())
"""
    done = subprocess.run([sys.executable, "-c", program, str(directory)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1500:]


@case(recorders=ANY)
def a_subinterpreter(directory: pathlib.Path) -> None:
    """A subinterpreter that imports the package gets it, or an error; the main one goes on."""
    import mindtorch_v2 as torch

    try:
        import _xxsubinterpreters as subinterpreters  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return
    program = ("import sys; sys.path[:0] = " + repr([path for path in sys.path if path]) +
               "\ntry:\n    import mindtorch_v2._native._recorder\nexcept ImportError as error:\n    print(error)\n")
    one = subinterpreters.create()
    try:
        subinterpreters.run_string(one, program)
    except Exception as error:
        assert "RunFailed" in type(error).__name__, error
    with torch.profiler.profile(**_EVERYTHING) as prof:
        torch.ones(2)
    assert "aten::ones" in _names(prof)
    subinterpreters.destroy(one)
    check_recorder()


@case(seconds=120)
def starts_at_the_limit_of_recursion(directory: pathlib.Path) -> None:
    """Starting and stopping with almost no stack left raises RecursionError or works; nothing records afterwards."""
    import mindtorch_v2 as torch

    def at(depth: int, function: Any) -> None:
        if depth:
            at(depth - 1, function)
        else:
            function()

    def use() -> None:
        with torch.profiler.profile(**_EVERYTHING):
            torch.ones(2)

    use()
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    failed = 0
    try:
        for depth in range(300, 395):
            try:
                at(depth, use)
            except RecursionError:
                failed += 1
            assert not torch.autograd._profiler_enabled(), depth
    finally:
        sys.setrecursionlimit(before)
    assert failed > 10, failed
    check_recorder()


@case(seconds=150)
def memory_that_ends_inside(directory: pathlib.Path) -> None:
    """MemoryError at any allocation of start and stop comes out as such, and nothing records afterwards."""
    try:
        import _testcapi  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return
    import mindtorch_v2 as torch

    def use(options: dict[str, Any], number: int) -> None:
        """Not during ops: NumPy does not bear it."""
        prof = torch.profiler.profile(**options)
        _testcapi.set_nomemory(number, number + 1)
        prof.start()
        _testcapi.remove_mem_hooks()
        torch.ones(2)
        _testcapi.set_nomemory(number, number + 1)
        prof.stop()

    for options in _OPTIONS:
        use(options, 10**6)
        failed = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(1, 2000, 17):
                try:
                    use(options, number)
                except MemoryError:
                    failed += 1
                finally:
                    _testcapi.remove_mem_hooks()
                assert not torch.autograd._profiler_enabled(), (options, number)
        assert failed > 10, (options, failed)
    check_recorder()
