"""The recorder itself: errors that are kept, starts and stops that fail, scopes and profilers that are left open."""

from __future__ import annotations

import concurrent.futures
import gc
import pathlib
import sys
import threading
import time
import warnings
from typing import Any

from ..registry import ANY, BOTH, case
from ..tools import check_recorder, raises, resident_mb

_EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}


@case(PYTHONMALLOC="debug")
def error_kept_after_its_thread(directory: pathlib.Path) -> None:
    """An error of an op on a thread can be kept longer than the thread, and freed afterwards."""
    import mindtorch_v2 as torch

    def fail() -> None:
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        y.add_(1)
        y.sum().backward()

    for _ in range(20):
        with torch.profiler.profile(with_stack=True):
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                future = pool.submit(fail)
                error = future.exception()
            assert isinstance(error, RuntimeError)
        del future, error
        gc.collect()
    check_recorder()


@case()
def calls_after_an_error_that_is_kept(directory: pathlib.Path) -> None:
    """While the error of an op is kept, Python calls on its thread are recorded as before."""
    import mindtorch_v2 as torch

    def after_the_error() -> None:
        torch.ones(2).add(1)

    kept = []
    with torch.profiler.profile(with_stack=True) as prof:
        try:
            torch.ones(2) @ torch.ones(3)
        except RuntimeError as error:
            kept.append(error)
        after_the_error()
    names = " ".join(event.name for event in prof.events())
    assert "after_the_error" in names, names
    assert kept
    kept.clear()
    check_recorder()


@case(seconds=120, quick=False)
def modules_called_first_while_stopping(directory: pathlib.Path) -> None:
    """Threads that call modules for the first time while a recording stops do not make it fail."""
    import mindtorch_v2 as torch

    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            torch.nn.Linear(2, 2)(torch.ones(1, 2))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(40):
            with torch.profiler.profile(**_EVERYTHING) as prof:
                torch.nn.Linear(2, 2)(torch.ones(1, 2))
                time.sleep(0.002)
            assert len(prof.events()) > 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    check_recorder()


@case()
def a_stop_that_fails(directory: pathlib.Path) -> None:
    """Whatever fails in start or stop, nothing records afterwards and the next recording is whole."""
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import session

    for method in ("stop", "start"):
        original = getattr(session.Recorder, method)

        def fail(self: Any, original: Any = original) -> None:
            original(self)
            raise RuntimeError("on purpose")

        setattr(session.Recorder, method, fail)
        try:
            with torch.profiler.profile(**_EVERYTHING):
                torch.ones(2) + 1
        except RuntimeError as error:
            assert "on purpose" in str(error)
        finally:
            setattr(session.Recorder, method, original)
        check_recorder()


@case()
def first_use_of_nn_inside(directory: pathlib.Path) -> None:
    """`torch.nn` can be used for the first time inside a recording with stacks."""
    import mindtorch_v2 as torch

    with torch.profiler.profile(with_stack=True) as prof:
        torch.nn.Linear(3, 2)
    assert prof.events()


@case()
def first_use_of_everything_inside(directory: pathlib.Path) -> None:
    """Every public part can be imported for the first time inside a recording with stacks and modules."""
    import importlib

    import mindtorch_v2 as torch

    with torch.profiler.profile(**_EVERYTHING):
        for name in ("nn", "nn.functional", "optim", "utils.data", "fft", "linalg", "distributions", "func", "amp",
                     "sparse", "special", "signal", "autograd.functional", "utils.checkpoint", "utils.flop_counter",
                     "library", "profiler._pattern_matcher", "testing"):
            importlib.import_module(f"mindtorch_v2.{name}")
    check_recorder()


@case()
def a_list_that_contains_itself(directory: pathlib.Path) -> None:
    """A list that contains itself is an error, not the end of the process."""
    import mindtorch_v2 as torch

    items: list[Any] = [torch.ones(2)]
    items.append(items)
    first: list[Any] = []
    first.append((first,))
    nested: list[Any] = [torch.ones(2)]
    for _ in range(100_000):
        nested = [nested]
    for options in ({}, {"record_shapes": True}, {"record_shapes": True, "profile_memory": True}, _EVERYTHING):
        with torch.profiler.profile(**options):
            raises((TypeError, RecursionError, RuntimeError), lambda: torch.cat(items))
            raises((TypeError, RecursionError, RuntimeError), lambda: torch.cat(nested))
            for endless in (first, nested):
                raises(ValueError, lambda endless=endless: torch.tensor(endless))
            with torch.autograd.profiler.record_function("scope", "text"):
                torch.ones(2)
    while isinstance(nested, list) and nested:
        nested = nested[0]  # the list itself would be freed by recursion
    check_recorder()


@case()
def a_profiler_that_is_dropped(directory: pathlib.Path) -> None:
    """A profiler that is dropped without stop() ends, with a warning, and its memory is given back."""
    import mindtorch_v2 as torch

    prof = torch.profiler.profile(record_shapes=True)
    prof.start()
    torch.ones(2) + 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del prof
        gc.collect()
    assert not torch.autograd._profiler_enabled(), "it records for ever"
    assert caught, "there is no warning"
    x = torch.ones(2)
    x + 1
    before = resident_mb()
    for _ in range(100_000):
        x + 1
    assert resident_mb() - before < 5, "ops are still noted"
    check_recorder()


@case()
def a_scope_left_open(directory: pathlib.Path) -> None:
    """A scope that one recording leaves open and the next one closes does not begin before that."""
    import mindtorch_v2 as torch

    scope = torch.profiler.record_function("open")
    with torch.profiler.profile():
        scope.__enter__()
        torch.ones(2)
    time.sleep(0.01)
    with torch.profiler.profile() as prof:
        torch.ones(2)
        scope.__exit__(None, None, None)
    for event in prof.events():
        assert event.time_range.start >= 0, (event.name, event.time_range.start)
    check_recorder()


@case()
def scopes_closed_in_the_wrong_order(directory: pathlib.Path) -> None:
    """Scopes that are closed in another order, twice, on another thread or never leave a sound tree."""
    import mindtorch_v2 as torch

    with torch.profiler.profile(**_EVERYTHING) as prof:
        a, b, c = (torch.profiler.record_function(name) for name in "abc")
        a.__enter__()
        b.__enter__()
        a.__exit__(None, None, None)
        torch.ones(2)
        b.__exit__(None, None, None)
        c.__enter__()
        thread = threading.Thread(target=lambda: c.__exit__(None, None, None))
        thread.start()
        thread.join()
        torch.profiler.record_function("never").__enter__()
    for event in prof.events():
        assert event.self_cpu_time_total >= 0, event
    prof.export_chrome_trace(directory / "t.json")
    check_recorder()


@case()
def a_scope_with_a_strange_name(directory: pathlib.Path) -> None:
    """Any text names a scope: steps of 5000 digits, surrogates, zeros, megabytes."""
    import mindtorch_v2 as torch

    names = ["ProfilerStep#" + "9" * 5000, "ProfilerStep#", "ProfilerStep#-1", "ProfilerStep#1e5", "\ud800", "\0", "",
             "x" * 2_000_000, 'quote"\\\n', "autograd::engine::evaluate_function: ", "nn.Module: ", "[memory]"]
    with torch.profiler.profile() as prof:
        for name in names:
            with torch.profiler.record_function(name):
                torch.ones(1)
    recorded = [prof.trace.names[number] for number in prof.trace.events["name"].tolist()]
    assert not set(names) - set(recorded), set(names) - set(recorded)
    prof.key_averages().table()
    prof.step_summary()
    for path in ("t.json", "t.json.gz", "t.mtp"):
        (prof.save if path.endswith("mtp") else prof.export_chrome_trace)(directory / path)
        again = torch.profiler.load(directory / path)
        assert len(again.events()) == len(prof.events())


@case()
def a_clock_that_jumps_back(directory: pathlib.Path) -> None:
    """A clock that goes back gives no negative durations, and files that can be read."""
    import itertools

    import mindtorch_v2 as torch
    from mindtorch_v2._dispatch import observer

    counter = itertools.count()
    real = observer.HOOK["clock"]

    def jumping() -> int:
        number = next(counter)
        return int(real()) - (10_000_000 if number % 5 == 4 else 0)

    observer.HOOK["clock"] = jumping
    try:
        with torch.profiler.profile() as prof:
            for number in range(30):
                with torch.profiler.record_function(f"scope {number}"):
                    torch.ones(2) + 1
    finally:
        observer.HOOK["clock"] = real
    assert all(event.time_range.elapsed_us() >= 0 for event in prof.events())
    assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    prof.export_chrome_trace(directory / "t.json")
    assert len(torch.profiler.load(directory / "t.json").events()) == len(prof.events())


@case(recorders=("python",))
def bodies_of_overrides_in_stacks(directory: pathlib.Path) -> None:
    """What `__torch_function__` and `__torch_dispatch__` do is in the stacks without the C recorder too."""
    import mindtorch_v2 as torch
    from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return in_the_override(super().__torch_function__, func, types, args, kwargs)

    def in_the_override(call: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(func, types, args, kwargs or {})

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return in_the_mode(func, args, kwargs)

    def in_the_mode(func: Any, args: Any, kwargs: Any) -> Any:
        return func(*args, **(kwargs or {}))

    x = torch.ones(2).as_subclass(Loud)
    with torch.profiler.profile(with_stack=True) as prof:
        x + 1
        with Mode():
            torch.ones(2) + 1
    names = " ".join(event.name for event in prof.events())
    assert "in_the_override" in names, names
    assert "in_the_mode" in names, names


@case()
def the_window_ends_after_the_span(directory: pathlib.Path) -> None:
    """The end of the window is not before the end of the profiler's span in the file."""
    import json

    import mindtorch_v2 as torch

    for number in range(60):
        with torch.profiler.profile() as prof:
            torch.ones(2) + number
        prof.export_chrome_trace(directory / "t.json")
        events = json.loads((directory / "t.json").read_text())["traceEvents"]
        span = next(event for event in events if event.get("cat") == "Trace")
        window = next(event for event in events if event["name"] == "Record Window End")
        assert window["ts"] >= span["ts"] + span["dur"], (window, span)


@case()
def gradients_while_a_debugger_looks(directory: pathlib.Path) -> None:
    """A trace or profile function that holds frames does not change what a backward computes or writes over."""
    import mindtorch_v2 as torch

    def gradient() -> list[float]:
        x = torch.ones(3, requires_grad=True)
        held = torch.full((3,), 2.0)
        y = (x * 2 + x * x + x.exp()).sum() + (x * held).sum()
        y.backward(torch.tensor(1.0))
        z = (x * x).sum()
        z.backward()
        assert held.tolist() == [2.0, 2.0, 2.0]
        return x.grad.tolist()

    expected = gradient()
    frames: list[Any] = []

    def hold(frame: Any, event: str, argument: Any) -> Any:
        if len(frames) < 100_000:
            frames.append((frame, argument, dict(frame.f_locals)))
        return hold

    for install in (sys.settrace, sys.setprofile):
        frames.clear()
        install(hold)
        try:
            found = gradient()
        finally:
            install(None)
        assert found == expected, install
    with torch.profiler.profile(**_EVERYTHING):
        assert gradient() == expected


@case(seconds=240, quick=False)
def interrupt_at_every_line_of_start_and_stop(directory: pathlib.Path) -> None:
    """KeyboardInterrupt at any line of start and stop leaves nothing recording, and the next recording whole."""
    import mindtorch_v2 as torch

    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "mindtorch_v2"))
    from interrupting import interrupted_everywhere

    model = torch.nn.Linear(2, 2)

    def run() -> None:
        with torch.profiler.profile(**_EVERYTHING):
            model(torch.ones(1, 2)).sum().backward()

    run()
    bad: list[str] = []
    places = 0
    for place in interrupted_everywhere(run, "mindtorch_v2/profiler/"):
        places += 1
        if torch.autograd._profiler_enabled():
            bad.append(f"{place}: still on")
            continue
        with torch.profiler.profile(with_stack=True) as prof:
            torch.ones(2) + 1
        if not {"aten::ones", "aten::add"} <= {event.name for event in prof.events()}:
            bad.append(f"{place}: the next one is empty")
    assert places > 100, places
    assert not bad, f"{len(bad)} of {places} places: {bad[:10]}"


@case(PYTHONMALLOC="debug")
def recordings_inside_recordings(directory: pathlib.Path) -> None:
    """Profilers that overlap, nest, end in any order or start twice each have what ran while they were on."""
    import mindtorch_v2 as torch

    first, second = torch.profiler.profile(**_EVERYTHING), torch.profiler.profile()
    first.start()
    torch.ones(2)
    second.start()
    torch.zeros(2)
    first.stop()
    torch.arange(2)
    second.stop()
    names = [{event.name for event in prof.events()} for prof in (first, second)]
    assert "aten::ones" in names[0] and "aten::zeros" in names[0] and "aten::arange" not in names[0]
    assert "aten::ones" not in names[1] and "aten::zeros" in names[1] and "aten::arange" in names[1]
    check_recorder()


@case(recorders=ANY)
def one_process_many_recordings(directory: pathlib.Path) -> None:
    """Three hundred recordings with everything on take no more memory than the first fifty did."""
    import mindtorch_v2 as torch

    model = torch.nn.Linear(4, 4)

    def run(count: int) -> None:
        for _ in range(count):
            with torch.profiler.profile(**_EVERYTHING) as prof:
                model(torch.ones(2, 4)).sum().backward()
            prof.key_averages()

    run(50)
    gc.collect()
    before = resident_mb()
    run(300)
    gc.collect()
    assert resident_mb() - before < 20, resident_mb() - before


@case(recorders=BOTH, seconds=90)
def a_million_ops_with_a_limit(directory: pathlib.Path) -> None:
    """`max_events` bounds memory and says how much was dropped."""
    import mindtorch_v2 as torch

    x = torch.ones(1)
    with torch.profiler.profile(max_events=1000) as prof:
        for _ in range(100_000):
            x + 1
    assert len(prof.trace) <= 1100, len(prof.trace)
    assert prof.trace.dropped > 90_000, prof.trace.dropped
    assert "dropped" in prof.key_averages().table().lower()
