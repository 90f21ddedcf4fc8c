"""What a program gives to a profiler: schedules, callbacks, ids, metadata that fail, return nonsense or call back."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import threading
import warnings
from typing import Any

from ..registry import ANY, case
from ..tools import check_recorder, raises

_EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}


def _steps(prof: Any, count: int = 4) -> None:
    import mindtorch_v2 as torch

    with prof:
        for _ in range(count):
            torch.ones(2) + 1
            prof.step()


@case()
def schedules_that_answer_nonsense(directory: pathlib.Path) -> None:
    """A schedule that returns anything at all leaves nothing recording."""
    import mindtorch_v2 as torch

    for answer in (None, 2, "RECORD", object(), torch.profiler.ProfilerAction, [], float("nan"),
                   torch.profiler.ProfilerAction.DEVICE_STOPPED):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _steps(torch.profiler.profile(schedule=lambda step, answer=answer: answer, **_EVERYTHING))
            except Exception as error:
                assert not isinstance(error, SystemError), error
        assert not torch.autograd._profiler_enabled(), answer
    check_recorder()


@case()
def every_sequence_of_actions(directory: pathlib.Path) -> None:
    """Any three actions in any order leave nothing recording, and save what was to be saved."""
    import mindtorch_v2 as torch

    actions = list(torch.profiler.ProfilerAction)[:4]
    for sequence in itertools.product(actions, repeat=3):
        saved: list[int] = []
        plan = [*sequence, actions[0]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _steps(torch.profiler.profile(schedule=lambda step, plan=plan: plan[min(step, 3)],
                                          on_trace_ready=lambda prof, saved=saved: saved.append(len(prof.events()))), 3)
        assert not torch.autograd._profiler_enabled(), sequence
        assert len(saved) == sum(one is actions[3] for one in sequence), (sequence, saved)
        assert all(saved), (sequence, saved)
    check_recorder()


@case()
def callbacks_that_call_the_profiler(directory: pathlib.Path) -> None:
    """A callback may record, export, read, and call start, stop or step: the recorder is sound afterwards."""
    import mindtorch_v2 as torch

    def nested(prof: Any) -> None:
        with torch.profiler.profile(**_EVERYTHING) as inner:
            torch.arange(3)
        assert "aten::arange" in {event.name for event in inner.events()}

    def export(prof: Any) -> None:
        prof.export_chrome_trace(directory / "t.json")
        prof.events().clear()

    def fork(prof: Any) -> None:
        child = os.fork()
        if child == 0:
            with torch.profiler.profile() as inner:
                torch.arange(3)
            os._exit(0 if inner.events() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def on_a_thread(prof: Any) -> None:
        thread = threading.Thread(target=nested, args=(prof,))
        thread.start()
        thread.join()

    depth = []

    def again(name: str, prof: Any) -> None:
        if len(depth) < 5:
            depth.append(name)
            getattr(prof, name)()

    callbacks = [nested, export, fork, on_a_thread]
    callbacks += [lambda prof, name=name: again(name, prof) for name in ("stop", "start", "step", "stop_trace")]
    for callback in callbacks:
        depth.clear()
        prof = torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2),
                                      on_trace_ready=callback, **_EVERYTHING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _steps(prof, 5)
            except (RuntimeError, AssertionError, RecursionError):
                assert depth, callback
        while torch.autograd._profiler_enabled() and depth:  # it was told to start
            prof.stop_trace()
        assert not torch.autograd._profiler_enabled(), callback
    check_recorder()


@case()
def callbacks_that_end_the_program(directory: pathlib.Path) -> None:
    """SystemExit, KeyboardInterrupt and GeneratorExit of a callback come out, and nothing records."""
    import mindtorch_v2 as torch

    for kind in (SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, RecursionError):
        def fail(*_: Any, kind: Any = kind) -> Any:
            raise kind("on purpose")

        for options in ({"on_trace_ready": fail}, {"schedule": fail}, {"custom_trace_id_callback": fail}):
            raises(kind, lambda options=options: _steps(torch.profiler.profile(**options)), "on purpose")
            assert not torch.autograd._profiler_enabled(), (kind, options)
    check_recorder()


@case(recorders=ANY)
def ids_of_any_kind(directory: pathlib.Path) -> None:
    """Whatever names a trace, its file is valid JSON, or the error is raised before there is a recording."""
    import mindtorch_v2 as torch

    for number, value in enumerate((3, None, b"x", "\ud800", "", 'a"b\n', object(), float("nan"), ["x"], {"a": 1})):
        prof = torch.profiler.profile(custom_trace_id_callback=lambda value=value: value)
        try:
            with prof:
                torch.ones(2)
        except (TypeError, ValueError):
            assert not torch.autograd._profiler_enabled()
            continue
        path = directory / f"{number}.json"
        prof.export_chrome_trace(path)
        json.loads(path.read_bytes(), parse_constant=_never)
        prof.save(directory / "t.mtp")


def _never(text: str) -> Any:
    raise AssertionError(f"{text} is not JSON")


@case(recorders=ANY)
def keys_of_metadata(directory: pathlib.Path) -> None:
    """A key that is no text is refused with TypeError; values that are not JSON never make a file that is not."""
    import mindtorch_v2 as torch

    prof = torch.profiler.profile()
    prof.start()
    torch.ones(2)
    for key in (3, None, ("a",), 1.5, object()):
        raises(TypeError, lambda key=key: prof.add_metadata(key, "x"))
        raises(TypeError, lambda key=key: prof.add_metadata_json(key, '"x"'))
    for value in ("NaN", "Infinity", "-Infinity", "1e999", "[NaN]", '{"a": Infinity}', "1" * 5000,
                  "[" * 900 + "]" * 900):
        try:
            prof.add_metadata_json("value", value)
        except ValueError as error:
            assert "value" in str(error)
    for key in ("traceEvents", "schemaVersion", "", "\ud800", 'a"b'):
        prof.add_metadata(key, "text")
    prof.stop()
    prof.export_chrome_trace(directory / "t.json")
    document = json.loads((directory / "t.json").read_bytes(), parse_constant=_never)
    assert isinstance(document["traceEvents"], list) and len(document["traceEvents"]) > 1
    prof.save(directory / "t.mtp")
    assert len(torch.profiler.load(directory / "t.mtp").events()) == len(prof.events())
    raises((TypeError, ValueError), lambda: torch.profiler.profile().preset_metadata_json(3, "1"))


@case()
def hooks_that_stop_the_recording(directory: pathlib.Path) -> None:
    """A recording may start and stop inside a backward hook, a module's call, an op of the program's own, a scope."""
    import mindtorch_v2 as torch

    library = torch.library.Library("faults", "DEF")
    library.define("switch(Tensor x) -> Tensor")
    switched: list[Any] = []

    def switch(*_: Any) -> Any:
        if switched:
            switched.pop().stop()
        else:
            switched.append(torch.profiler.profile(**_EVERYTHING))
            switched[0].start()
        return None

    def kernel(x: Any) -> Any:
        switch()
        return x * 2

    library.impl("switch", kernel, "CPU")

    class Switching(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            switch()
            return x + 1

    def in_backward() -> None:
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(switch)
        (y * 3).sum().backward()
        assert x.grad.tolist() == [6, 6]

    def in_a_scope() -> None:
        with torch.profiler.record_function("scope"):
            switch()

    for first, second in itertools.product((in_backward, lambda: Switching()(torch.ones(2)), in_a_scope,
                                            lambda: torch.ops.faults.switch(torch.ones(2))), repeat=2):
        first()
        prof = switched[0]
        torch.arange(3)
        second()
        assert not torch.autograd._profiler_enabled()
        assert "aten::arange" in {event.name for event in prof.events()}
        assert all(event.self_cpu_time_total >= 0 and event.time_range.start >= 0 for event in prof.events())
    check_recorder()


@case()
def hooks_that_fail(directory: pathlib.Path) -> None:
    """Errors of hooks of tensors, modules and optimizers come out of a recording, which is whole."""
    import mindtorch_v2 as torch

    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    def on_a_tensor() -> None:
        x = torch.ones(2, requires_grad=True)
        x.register_hook(fail)
        (x * 2).sum().backward()

    def on_a_module(method: str) -> None:
        model = torch.nn.Linear(2, 2)
        getattr(model, method)(fail)
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()

    def on_an_optimizer(method: str) -> None:
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        getattr(optimizer, method)(fail)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    uses = [on_a_tensor, *(lambda name=name: on_a_module(name) for name in (
        "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook")),
        *(lambda name=name: on_an_optimizer(name) for name in ("register_step_pre_hook", "register_step_post_hook"))]
    for use in uses:
        with torch.profiler.profile(**_EVERYTHING) as prof:
            raises(ZeroDivisionError, use, "on purpose")
            torch.arange(3)
        assert "aten::arange" in {event.name for event in prof.events()}
        prof.module_tree()
    check_recorder()


@case(recorders=ANY)
def results_that_are_changed(directory: pathlib.Path) -> None:
    """A program may change the lists and rows that it gets; what is asked for next is whole again or an error."""
    import copy
    import pickle

    import mindtorch_v2 as torch

    with torch.profiler.profile(**_EVERYTHING) as prof:
        torch.ones(2) + 1
    for spoil in (lambda events: events.clear(), lambda events: events.append(None), lambda events: events.reverse(),
                  lambda events: setattr(events[0], "name", "\ud800"), lambda events: events.extend(list(events)),
                  lambda events: setattr(events[0], "time_range", None)):
        for rows in (prof.events(), prof.key_averages()):
            try:
                spoil(rows)
                rows.table()
                str(rows)
            except (AttributeError, TypeError, IndexError, ValueError, UnicodeError):
                continue
    assert len(prof.trace) > 0
    prof.export_chrome_trace(directory / "t.json")
    assert json.loads((directory / "t.json").read_bytes())["traceEvents"]
    with torch.profiler.profile() as prof:
        torch.ones(2) + 1
    for copied in (copy.deepcopy(prof.events()), pickle.loads(pickle.dumps(prof.events())), copy.copy(prof.events())):
        assert [event.name for event in copied] == [event.name for event in prof.events()]
