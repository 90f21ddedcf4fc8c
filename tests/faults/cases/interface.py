"""The profiler's interface used wrongly, twice, out of order, or with objects that misbehave."""

from __future__ import annotations

import contextlib
import copy
import pathlib
import pickle
import sys
import warnings
from typing import Any

from ..registry import BOTH, case
from ..tools import check_recorder, raises

_EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}


@case()
def out_of_order(directory: pathlib.Path) -> None:
    """Any order of start, stop, step and results ends in an error that is an Exception, and a sound recorder."""
    import itertools

    import mindtorch_v2 as torch

    warnings.simplefilter("ignore")
    for order in itertools.product(("start", "stop", "step", "events", "prepare_trace", "start_trace", "stop_trace"),
                                   repeat=3):
        prof = torch.profiler.profile()
        for name in order:
            try:
                getattr(prof, name)()
            except (AssertionError, RuntimeError):
                continue
        with contextlib.suppress(AssertionError, RuntimeError):
            prof.stop()
        while torch.autograd._profiler_enabled():  # started more than once
            prof.stop_trace()
    check_recorder()


@case()
def callbacks_that_fail(directory: pathlib.Path) -> None:
    """A schedule, a callback or an id that raises leaves nothing recording."""
    import mindtorch_v2 as torch

    def fail(*_: Any) -> Any:
        raise ValueError("on purpose")

    def later(step: int) -> Any:
        return fail() if step == 2 else torch.profiler.ProfilerAction.RECORD

    def use(**options: Any) -> None:
        with torch.profiler.profile(**options) as prof:
            for _ in range(4):
                torch.ones(2) + 1
                prof.step()

    for options in ({"schedule": fail}, {"schedule": later}, {"on_trace_ready": fail},
                    {"custom_trace_id_callback": fail}, {"schedule": lambda step: None},
                    {"schedule": torch.profiler.schedule(wait=0, warmup=1, active=1), "on_trace_ready": fail}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                use(**options)
            except Exception as error:
                assert "on purpose" in str(error) or "schedule" in options, error
        assert not torch.autograd._profiler_enabled(), options
    check_recorder()


@case()
def bodies_that_fail(directory: pathlib.Path) -> None:
    """Whatever is raised inside, also SystemExit and KeyboardInterrupt, comes out, and what ran is there."""
    import mindtorch_v2 as torch

    for kind in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError, MemoryError):
        prof = torch.profiler.profile(**_EVERYTHING)
        try:
            with prof, torch.profiler.record_function("scope"):
                torch.ones(2) + 1
                raise kind("on purpose")
        except kind:
            pass
        assert {"scope", "aten::ones", "aten::add"} <= {event.name for event in prof.events()}, kind
    check_recorder()


@case()
def recursion_to_the_limit(directory: pathlib.Path) -> None:
    """RecursionError inside ops, modules and hooks is the program's to catch."""
    import mindtorch_v2 as torch

    class Endless(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return self(x + 1)

    def deep(x: Any) -> Any:
        return deep(x + 1)

    for options in ({}, _EVERYTHING):
        with torch.profiler.profile(**options) as prof:
            raises(RecursionError, lambda: deep(torch.ones(1)))
            raises(RecursionError, lambda: Endless()(torch.ones(1)))
        assert len(prof.events()) > 100
        prof.key_averages().table()
        prof.export_chrome_trace(directory / "t.json")
    check_recorder()


@case()
def memory_that_is_not_there(directory: pathlib.Path) -> None:
    """Asking for more memory than there is raises, is noted, and ops go on."""
    import mindtorch_v2 as torch

    with torch.profiler.profile(**_EVERYTHING) as prof:
        for _ in range(3):
            raises((RuntimeError, MemoryError), lambda: torch.ones(1 << 42))
        assert (torch.ones(3) + 1).tolist() == [2, 2, 2]
    assert len(prof.events()) > 0
    prof.export_chrome_trace(directory / "t.json")
    check_recorder()


@case()
def arguments_that_misbehave(directory: pathlib.Path) -> None:
    """Arguments whose repr, hash, len or attributes raise are recorded as what can be said of them."""
    import mindtorch_v2 as torch

    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"no {name}")

        def __repr__(self) -> str:
            raise RuntimeError("no text")

        __hash__ = None  # type: ignore[assignment]

    class Liar(list):
        def __len__(self) -> int:
            return 10 ** 9

    with torch.profiler.profile(**_EVERYTHING) as prof:
        for value in (Hostile(), Liar([torch.ones(1)]), object(), lambda: 0, float("nan"), 10 ** 400, "\ud800"):
            for use in (lambda v: torch.add(torch.ones(2), v), lambda v: torch.cat(v),
                        lambda v: torch.ones(2).reshape(v),
                        lambda v: torch._C._profiler._RecordFunctionFast("f", [v], {"k": v}).__enter__()):
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        use(value)
                except Exception:
                    continue
    prof.key_averages(group_by_input_shape=True).table()
    prof.export_chrome_trace(directory / "t.json")
    check_recorder()


@case()
def copies_of_a_profiler(directory: pathlib.Path) -> None:
    """Copying or pickling results gives equal ones or a clear error; a running profiler stays as it is."""
    import mindtorch_v2 as torch

    prof = torch.profiler.profile()
    prof.start()
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        try:
            made = make(prof)
        except (TypeError, RuntimeError, AttributeError, pickle.PicklingError):
            continue
        del made
    torch.ones(2)
    prof.stop()
    assert "aten::ones" in {event.name for event in prof.events()}
    check_recorder()


@case(recorders=BOTH)
def other_profilers_beside(directory: pathlib.Path) -> None:
    """cProfile, a trace function and coverage-like tools run beside a recording and are left as they were."""
    import cProfile

    import mindtorch_v2 as torch

    other = cProfile.Profile()
    other.enable()
    with torch.profiler.profile(with_stack=True) as prof:
        torch.ones(2) + 1
    other.disable()
    assert "aten::add" in {event.name for event in prof.events()}
    seen: list[str] = []

    def watch(frame: Any, event: str, argument: Any) -> Any:
        seen.append(event)
        return watch

    sys.settrace(watch)
    with torch.profiler.profile(with_stack=True):
        torch.ones(2) + 1
    assert sys.gettrace() is watch
    sys.settrace(None)
    assert "call" in seen
    profile: list[str] = []
    hook = lambda frame, event, argument: profile.append(event)
    sys.setprofile(hook)
    with torch.profiler.profile(with_stack=True):
        pass
    left = sys.getprofile()
    sys.setprofile(None)
    assert left is hook, left
    check_recorder()


@case()
def modules_that_change_while_called(directory: pathlib.Path) -> None:
    """Modules that add, remove or replace children and parameters during their call are recorded."""
    import mindtorch_v2 as torch

    class Shifting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            y = self.part(x)
            del self.part
            self.part = torch.nn.Linear(2, 2)
            self.extra = torch.nn.ReLU()
            self.register_parameter("weight", torch.nn.Parameter(torch.ones(1)))
            self.__class__ = type("Renamed", (Shifting,), {})
            return self.extra(y)

    model = torch.nn.Sequential(Shifting(), Shifting())
    with torch.profiler.profile(**_EVERYTHING) as prof:
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
    prof.module_tree()
    prof.key_averages(group_by_module=True).table()
    check_recorder()


@case()
def tensors_that_die_while_recorded(directory: pathlib.Path) -> None:
    """Finalizers that run ops, start recordings or raise inside a recording do no harm."""
    import mindtorch_v2 as torch

    class Last:
        def __init__(self, what: str) -> None:
            self.what = what
            self.tensor = torch.ones(4)

        def __del__(self) -> None:
            if self.what == "op":
                self.tensor + 1
            elif self.what == "record":
                with torch.profiler.profile(with_stack=True):
                    self.tensor * 2
            else:
                raise ValueError("on purpose")

    sys.unraisablehook = lambda *_: None
    for options in ({}, _EVERYTHING):
        with torch.profiler.profile(**options) as prof:
            for what in ("op", "record", "raise") * 5:
                Last(what)
                cycle: list[Any] = [Last(what)]
                cycle.append(cycle)
                del cycle
            import gc

            gc.collect()
        assert len(prof.events()) > 10
    check_recorder()
