"""`with_stack=True`: which Python calls a recording sees, that they nest, and that ops do not notice."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.native import NATIVE
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.recorder.python_stacks import _match, _match_by_walking, paired
from mindtorch_v2.profiler.sources import python_calls
from mindtorch_v2.profiler.sources.call_book import EXIT
from mindtorch_v2.profiler.sources.scopes import OPEN, Scopes
from mtprof.schema import Kind
from mtprof.store import kineto
from mtprof.tables.check import check
from mtprof.trace import Trace

FILE = os.path.basename(__file__)
# Whether threads that were alive are watched from the start with a profile function: one in C can be set from outside.
SET_FROM_OUTSIDE = NATIVE is not None and sys.version_info < (3, 12)
WAYS = ["profile function"] + (["monitoring"] if sys.version_info >= (3, 12) else [])


@pytest.fixture(params=WAYS, autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Newer Pythons have both ways to see calls; the older one is used there when all tool ids are taken."""
    if request.param == "profile function":
        monkeypatch.setattr(python_calls, "free_tool_id", lambda: None)
    return str(request.param)


RUNNERS = ("<frozen runpy>(", "runpy.py(")  # of the tests themselves; files of stacks leave them out


def label(function: Callable[..., Any], line: int | None = None) -> str:
    """How a call of a function of this file ends, whatever directory Python found the file in."""
    code = function.__code__
    return f"{FILE}({line or code.co_firstlineno}): {code.co_name}"


def at(function: Callable[..., Any], distance: int) -> str:
    """A frame of a function of this file in which a line runs, given by its distance from the first."""
    return label(function, calls_line(function, distance))


def short(name: str) -> str:
    return name.rpartition("/")[2]


def recorded(function: Callable[[], Any], **options: Any) -> Any:
    with profile(with_stack=True, **options) as prof:
        function()
    check(prof.trace)
    return prof


def calls(trace: Trace, thread: int | None = None) -> list[tuple[str, str | None]]:
    """Each Python call of this file with its caller that is no built-in function, in order."""
    events = trace.events
    rows = np.flatnonzero(np.isin(events["kind"], [Kind.PYTHON, Kind.MODULE]))
    found = []
    for row in rows.tolist():
        name, above = short(trace.names[events["name"][row]]), int(events["parent"][row])
        while above >= 0 and trace.names[events["name"][above]].startswith("<built-in "):
            above = int(events["parent"][above])
        if name.startswith((FILE, "nn.Module")) and (thread is None or thread == events["thread"][row]):
            found.append((name, short(trace.names[events["name"][above]]) if above >= 0 else None))
    return found


def stack_of(prof: Any, name: str) -> list[str]:
    """The stack of the only event of a name, as far as it is in this file."""
    [event] = [event for event in prof.events() if event.name == name]
    return [short(entry) for entry in event.stack if FILE in entry or entry.startswith("nn.Module")]


def frames(event: Any) -> list[str]:
    """The stack of an event without calls of built-in functions."""
    return [short(entry) for entry in event.stack if not entry.startswith("<built-in ")]


def inner() -> Any:
    return torch.ones(3).sin()


def outer() -> Any:
    return inner()


def test_calls_and_stacks() -> None:
    def root() -> None:
        outer()
        torch.ones(2).cos()

    prof = recorded(root)
    assert calls(prof.trace)[-3:] == [
        (label(root), label(recorded, calls_line(recorded, 1))), (label(outer), label(root)),
        (label(inner), label(outer))]
    assert stack_of(prof, "aten::sin")[:3] == [at(inner, 1), label(outer), label(root)]
    assert stack_of(prof, "aten::cos")[:1] == [at(root, 2)]
    # What was open at the start is part of every stack, with the line it was at.
    here = sys._getframe().f_code
    assert any(entry.endswith(f": {here.co_name}") for entry in stack_of(prof, "aten::sin"))


def calls_line(function: Callable[..., Any], offset: int) -> int:
    """A line of a function by its distance from the first."""
    return function.__code__.co_firstlineno + offset


def test_of_this_package_only_what_the_user_calls_is_shown() -> None:
    def root() -> None:
        weight = torch.ones(3, 3, requires_grad=True)
        loss = torch.nn.functional.softmax(weight @ weight, 0).sum()
        loss.backward()
        optimizer = torch.optim.SGD([weight], lr=0.1)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        np.pad(np.ones(3), 1)

    root()  # compiles what is compiled on first use
    prof = recorded(root)
    names = [prof.trace.names[n] for n in prof.trace.events["name"][prof.trace.events["kind"] == Kind.PYTHON]]
    own = [name for name in names if name.startswith("mindtorch_v2/")]
    # The last but one is how an optimizer tells the profiler of a step.
    assert [name.partition(": ")[2] for name in own] == [
        "softmax", "backward", "wrapper", "_optimizer_step_code", "zero_grad"]
    assert all("(" in name and ".py" in name for name in own)
    after = [name for name in names[[short(name) for name in names].index(label(root)):] if name not in own]
    assert any("numpy" in name for name in after), "what the user calls of NumPy is shown"
    assert all(name.startswith("<built-in ") or "numpy" in name or "<__array_function__" in name
               for name in after[1:]), after


ASKING = """
import mindtorch_v2 as torch

class Mine(torch.Tensor):
    pass

class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

def shown():
    total = torch.Tensor.sum
    with torch.profiler.profile(with_stack=True) as prof:
        total(torch.ones(1, requires_grad=True)).backward()
    return [event.name.partition("(")[0] for event in prof.events()
            if "method ones of" in event.name or "method sum of" in event.name or event.name.endswith(": backward")]

before = shown()
with Mode():
    inside = shown()
after = shown()
mine = torch.ones(1).as_subclass(Mine)
assert before == after == shown() == shown(), (after, shown())
assert sorted(inside) == sorted(2 * before), inside
print(*before, sep=", ")
"""


def test_what_asks_for_overrides_is_shown_as_without(tmp_path: pathlib.Path) -> None:
    """In a process of its own: from the first instance of a subclass on, functions ask for good."""
    script = tmp_path / "script.py"
    script.write_text(ASKING)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.stdout == ("<built-in method ones of type object>, <built-in method sum of Tensor object>, "
                           "mindtorch_v2/_tensor_methods.py\n"), done.stderr


def test_recursion() -> None:
    def deep(n: int) -> Any:
        return deep(n - 1) if n else torch.ones(1).sin()

    prof = recorded(lambda: deep(4))
    assert stack_of(prof, "aten::sin")[:5] == [at(deep, 1), *[label(deep)] * 4]
    assert [name for name, _ in calls(prof.trace)].count(label(deep)) == 5


def test_exceptions_leave_calls() -> None:
    def fail(n: int) -> None:
        if n:
            fail(n - 1)
        raise ValueError("expected")

    def root() -> None:
        with contextlib.suppress(ValueError):
            fail(2)
        torch.ones(2).sin()

    assert stack_of(recorded(root), "aten::sin")[0] == at(root, 3)


def test_generators() -> None:
    def numbers() -> Iterator[Any]:
        for n in range(2):
            yield torch.ones(2).sin() + n

    def root() -> None:
        for tensor in numbers():
            tensor.cos()
        stopped = numbers()
        next(stopped)
        with contextlib.suppress(KeyError):
            stopped.throw(KeyError)
        closed = numbers()
        next(closed)
        closed.close()
        torch.ones(1).tan()

    prof = recorded(root)
    found = calls(prof.trace)
    first, resumed = label(numbers), label(numbers, calls_line(numbers, 2))
    assert found.count((first, label(root))) == 3
    assert sum(name.endswith(": numbers") for name, _ in found) >= 5
    assert {caller for name, caller in found if name.endswith(": numbers")} == {label(root)}
    stacks = [frames(event) for event in prof.events() if event.name == "aten::sin"]
    assert [stack[0] for stack in stacks] == [resumed] * 4  # all on this line
    assert all(frames(event)[0] == at(root, 2) for event in prof.events() if event.name == "aten::cos")
    assert stack_of(prof, "aten::tan")[0] == at(root, 10)


def test_coroutines() -> None:
    async def work(n: int) -> Any:
        await asyncio.sleep(0)
        return (torch.ones(2) * n).sin()

    async def both() -> None:
        await asyncio.gather(work(1), work(2))
        torch.ones(1).tan()

    prof = recorded(lambda: asyncio.run(both()))
    stacks = [frames(event) for event in prof.events() if event.name == "aten::sin"]
    assert len(stacks) == 2
    assert all(stack[0].endswith(": work") and not stack[1].endswith(": work") for stack in stacks)
    assert stack_of(prof, "aten::tan")[0].endswith(": both")


def in_thread() -> Any:
    return torch.ones(3).exp()


def test_threads_born_while_recording() -> None:
    def root() -> None:
        for _ in range(3):
            thread = threading.Thread(target=in_thread)
            thread.start()
            thread.join()

    prof = recorded(root)
    found = [event for event in prof.events() if event.name == "aten::exp"]
    assert len({event.thread for event in found}) == 3
    for event in found:
        entries = frames(event)
        assert entries[0] == at(in_thread, 1)
        assert [entry.partition("(")[0] for entry in entries[1:]] == ["threading.py"] * (len(entries) - 1)
        assert entries[-1].endswith(": _bootstrap") or entries[-1].endswith(": _bootstrap_inner")


@pytest.mark.parametrize("ran_ops", [True, False])
def test_threads_that_were_alive(way: str, ran_ops: bool) -> None:
    go, done = threading.Event(), threading.Event()
    ready = threading.Barrier(2)
    profile_functions: list[Any] = []

    def waits() -> None:
        if ran_ops:
            torch.ones(1)
        ready.wait()
        go.wait()
        torch.ones(2).sin()  # known from here on, at the latest
        in_thread()
        done.set()
        ready.wait()
        in_thread()  # after the recording
        profile_functions.append(sys.getprofile())

    thread = threading.Thread(target=waits, name="early")
    thread.start()
    ready.wait()

    def root() -> None:
        go.set()
        done.wait()

    prof = recorded(root)
    ready.wait()
    thread.join()
    # Otherwise a profile function comes with the first op.
    at_once = way == "monitoring" or SET_FROM_OUTSIDE
    places = [at(waits, line) for line in ((3, 4) if at_once else (5,))]
    first, second = stack_of(prof, "aten::exp")[:2]
    assert first == at(in_thread, 1)
    assert second in places
    assert stack_of(prof, "aten::sin")[0] == at(waits, 5)
    assert profile_functions == [None]


def test_threads_that_were_alive_and_run_no_op(way: str) -> None:
    if way != "monitoring" and not SET_FROM_OUTSIDE:
        pytest.skip("in Python one thread cannot watch another from outside")
    ready, go, done = threading.Barrier(3), threading.Event(), threading.Event()

    def was_there() -> None:
        ready.wait()
        go.wait()

    def works() -> None:
        was_there()
        in_between()
        done.set()

    def in_between() -> None:
        pass

    def idles() -> None:
        ready.wait()
        done.wait()
        finish.wait()

    finish = threading.Event()
    threads = [threading.Thread(target=works), threading.Thread(target=idles)]
    for thread in threads:
        thread.start()
    ready.wait()

    def root() -> None:
        go.set()
        threads[0].join()

    prof = recorded(root)
    finish.set()
    threads[1].join()
    trace = prof.trace
    of_thread = {number for number, info in enumerate(trace.threads) if info.tid == threads[0].native_id}
    names = [short(trace.names[name]).partition(": ")[2] for name, number
             in zip(trace.events["name"].tolist(), trace.events["thread"].tolist(), strict=True) if number in of_thread]
    assert [names.count(name) for name in ("was_there", "works", "in_between")] == [1, 1, 1]


def test_a_thread_that_did_nothing_in_the_recording_before(way: str) -> None:
    if way != "monitoring" and not SET_FROM_OUTSIDE:
        pytest.skip("in Python one thread cannot watch another from outside")
    ready, go = threading.Event(), threading.Lock()

    def works() -> None:
        pass

    def waits() -> None:
        ready.set()
        with go:
            works()

    with go:
        thread = threading.Thread(target=waits)
        thread.start()
        ready.wait()
        first = recorded(lambda: None)

        def root() -> None:
            go.release()
            thread.join()
            go.acquire()

        second = recorded(root)
    counts = [[short(name) for name, _ in calls(prof.trace)].count(label(works)) for prof in (first, second)]
    assert counts == [0, 1]


def test_a_thread_that_only_runs_ops() -> None:
    turns, stop = [0], []

    def loop() -> None:
        x = torch.ones(2)
        while not stop:
            x = x.sin()
            turns[0] += 1

    def wait_for(some: int) -> None:
        until = turns[0] + some
        while turns[0] < until:
            threading.Event().wait(0.0002)

    thread = threading.Thread(target=loop)
    thread.start()
    wait_for(1)

    def root() -> None:
        for _ in range(2):
            torch.ones(1).cos()
            wait_for(3)

    prof = recorded(root)
    stop.append(True)
    thread.join()
    stacks = [frames(event) for event in prof.events() if event.name == "aten::sin"]
    assert stacks
    with_stack = [stack for stack in stacks if stack and stack[0].endswith(": loop")]
    assert len(with_stack) >= len(stacks) - 2, "but for an op that began before the recording"


def test_users_profile_function_comes_back() -> None:
    seen: list[str] = []

    def users(frame: Any, event: str, argument: Any) -> None:
        seen.append(event)

    before, before_threads = sys.getprofile(), threading.getprofile()
    sys.setprofile(users)
    threading.setprofile(users)
    try:
        recorded(outer)
        assert sys.getprofile() is users
        assert threading.getprofile() is users
    finally:
        sys.setprofile(before)
        threading.setprofile(before_threads)
    assert seen


def test_a_profile_function_set_meanwhile_stays() -> None:
    def users(frame: Any, event: str, argument: Any) -> None:
        pass

    def root() -> None:
        sys.setprofile(users)
        outer()

    try:
        prof = recorded(root)
        assert sys.getprofile() is users
    finally:
        sys.setprofile(None)
    assert len([event for event in prof.events() if event.name == "aten::sin"]) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")
def test_users_monitoring_tool_goes_on(way: str) -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    seen: list[str] = []
    monitoring.use_tool_id(monitoring.PROFILER_ID, "users")
    try:
        monitoring.register_callback(monitoring.PROFILER_ID, monitoring.events.PY_START,
                                     lambda code, offset: seen.append(code.co_name))
        monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.PY_START)
        prof = recorded(outer)
        assert stack_of(prof, "aten::sin")[0] == at(inner, 1)
        seen.clear()
        outer()
        assert seen[:2] == ["outer", "inner"]
        assert monitoring.get_tool(monitoring.PROFILER_ID) == "users"
        assert all(monitoring.get_tool(tool) is None for tool in (0, 1, 3, 4, 5))
    finally:
        monitoring.set_events(monitoring.PROFILER_ID, 0)
        monitoring.free_tool_id(monitoring.PROFILER_ID)


def test_nothing_is_left_behind(way: str) -> None:
    recorded(outer)
    assert sys.getprofile() is None
    assert threading.getprofile() is None
    if sys.version_info >= (3, 12):
        assert [sys.monitoring.get_tool(tool) for tool in range(6)] == [None] * 6


def test_stopped_on_another_thread() -> None:
    prof = profile(with_stack=True)
    prof.start()
    outer()
    thread = threading.Thread(target=prof.stop)
    thread.start()
    thread.join()
    outer()  # the first call after the end restores this thread
    assert sys.getprofile() is None
    assert stack_of(prof, "aten::sin")[:2] == [at(inner, 1), label(outer)]


def test_a_recording_inside_a_recording() -> None:
    def root() -> None:
        with profile(with_stack=True) as inside:
            outer()
        parts.append(inside)
        outer()

    parts: list[Any] = []
    prof = recorded(root)
    assert stack_of(parts[0], "aten::sin")[:3] == [at(inner, 1), label(outer), label(root, calls_line(root, 1))]
    stacks = [frames(event)[:3] for event in prof.events() if event.name == "aten::sin"]
    assert stacks == [[at(inner, 1), label(outer), label(root)]] * 2
    check(parts[0].trace)


def test_stacks_only_inside() -> None:
    with profile() as around:
        outer()
        inside = recorded(outer)
        outer()
    assert not len(around.trace.optional("stacks")["frame"])
    assert not np.isin(around.trace.events["kind"], [Kind.PYTHON, Kind.MODULE]).any()
    assert stack_of(inside, "aten::sin")[:2] == [at(inner, 1), label(outer)]
    assert [event.name for event in around.events()].count("aten::sin") == 3


def test_pauses() -> None:
    with profile(with_stack=True) as prof:
        outer()
        prof.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
        outer()
        prof.toggle_collection_dynamic(True, [torch.profiler.ProfilerActivity.CPU])
        outer()
    check(prof.trace)
    stacks = [frames(event)[:2] for event in prof.events() if event.name == "aten::sin"]
    assert stacks == [[at(inner, 1), label(outer)]] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_not_watched() -> None:
    def root() -> None:
        child = os.fork()
        if not child:
            watched = sys.getprofile() is not None
            if sys.version_info >= (3, 12):
                watched |= any(sys.monitoring.get_tool(tool) for tool in range(6))
            os._exit(7 if watched else 0)
        statuses.append(os.waitpid(child, 0)[1])
        outer()

    statuses: list[int] = []
    prof = recorded(root)
    assert statuses == [0]
    assert stack_of(prof, "aten::sin")[:3] == [at(inner, 1), label(outer), label(root)]


@contextlib.contextmanager
def crossing(name: str) -> Iterator[None]:
    """A scope that begins in one call and ends in another."""
    with record_function(name):
        yield


def busy(model: Any) -> None:
    with record_function("step"), crossing("crossing"):
        loss = outer().sum() + model(torch.ones(2, 3)).sum()
        loss.backward()
    torch.ones(4).cos()


def test_ops_do_not_notice() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    trees = []
    for with_stack in (False, True):
        busy(model)
        with profile(with_stack=with_stack, profile_memory=True) as prof:
            busy(model)
        check(prof.trace)
        events = [event for event in prof.events() if not event.is_python_function]
        trees.append([(event.name, event.cpu_parent and event.cpu_parent.name) for event in events])
        for event in events:
            children = sum(child.cpu_time_total for child in event.cpu_children)
            assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - children, abs=1e-6)
        assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    assert trees[0] == trees[1]


def test_python_rows_in_events_and_averages() -> None:
    def root() -> None:
        for _ in range(3):
            outer()

    prof = recorded(root)
    events = [event for event in prof.events() if event.is_python_function]
    by_name = collections.Counter(short(event.name) for event in events)
    assert by_name[label(outer)] == by_name[label(inner)] == 3
    call = next(event for event in events if short(event.name) == label(inner))
    assert call.cpu_parent is not None
    assert short(call.cpu_parent.name) == label(outer)
    assert [child.name for child in call.cpu_children] == [
        "<built-in method ones of type object>", "<built-in method sin of Tensor object>"]
    assert [[inside.name for inside in child.cpu_children] for child in call.cpu_children] == [
        ["aten::ones"], ["aten::sin"]]
    ran = sum(child.cpu_time_total for child in call.cpu_children)
    assert call.self_cpu_time_total == pytest.approx(call.cpu_time_total - ran, abs=1e-6)
    assert call.python_parent_id == call.cpu_parent.python_id
    assert {short(row.key): row.count for row in prof.key_averages()}[label(inner)] == 3


def test_a_call_that_only_repeats_its_caller_is_one_row() -> None:
    def again(n: int) -> Any:
        return again(n - 1) if n else torch.ones(1)

    def again_with_op(n: int) -> Any:
        torch.ones(1)
        return again_with_op(n - 1) if n else None

    def root() -> None:
        again(3)
        again_with_op(3)

    names = [short(event.name) for event in recorded(root).events()]
    assert names.count(label(again)) == 1
    assert names.count(label(again_with_op)) == 4


def test_group_by_stack_and_export(tmp_path: pathlib.Path) -> None:
    def here() -> None:
        torch.ones(400, 400).sin()

    def there() -> None:
        torch.ones(400, 400).sin()

    def root() -> None:
        here()
        there()
        there()

    prof = recorded(root)
    rows = {short(row.stack[1]): row.count for row in prof.key_averages(group_by_stack_n=2) if row.key == "aten::sin"}
    assert rows == {at(here, 1): 1, at(there, 1): 2}
    prof.export_stacks(tmp_path / "stacks.txt")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    stacks = [line.rpartition(" ")[0].split(";") for line in lines]
    assert sum(stack[-1] == "aten::sin" and stack[-3].endswith(":_there") for stack in stacks) == 1  # both in one line
    assert all(int(line.rpartition(" ")[2]) > 0 for line in lines)


def test_a_flame_graph_has_the_time_of_short_calls(tmp_path: pathlib.Path) -> None:
    """Each call takes less than a microsecond, all together take more."""
    def short_one() -> None:
        pass

    def many() -> None:
        for _ in range(5000):
            short_one()

    prof = recorded(many)
    prof.export_stacks(tmp_path / "stacks.txt")
    written: collections.Counter[str] = collections.Counter()
    for line in (tmp_path / "stacks.txt").read_text().splitlines():
        stack, _, microseconds = line.rpartition(" ")
        written[stack] += int(microseconds)
    recorded_us: collections.Counter[str] = collections.Counter()
    for event in prof.events():
        if event.stack:
            stack = ";".join(re.sub("[ ;]", "_", entry) for entry in (*reversed(event.stack), event.name)
                             if not entry.startswith(RUNNERS))
            recorded_us[stack] += event.self_cpu_time_total
    assert any(stack.endswith("_short_one") for stack in written)
    for stack in recorded_us:
        assert written[stack] == pytest.approx(recorded_us[stack], abs=1.01)


def test_a_flame_graph_has_the_time_of_python_too(tmp_path: pathlib.Path) -> None:
    """A call's own time is in a line that ends with it; all lines add up to the recording."""
    def busy() -> None:
        for _ in range(100_000):
            pass
        torch.ones(1)

    def root() -> None:
        busy()
        torch.ones(1)

    torch.ones(1)  # the first use of an op is in no call's own time
    prof = recorded(root)
    prof.export_stacks(tmp_path / "stacks.txt")
    weights: dict[str, int] = {}
    for line in (tmp_path / "stacks.txt").read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        assert " " not in stack
        weights[stack.split(";")[-1]] = weights.get(stack.split(";")[-1], 0) + int(weight)
    at_busy = [weight for frame, weight in weights.items() if frame.endswith(label(busy).replace(" ", "_"))]
    own = next(event.self_cpu_time_total for event in prof.events() if short(event.name) == label(busy))
    assert own > 500
    assert sum(at_busy) == int(own)
    outermost = [event for event in prof.events() if not event.stack]
    total = sum(event.cpu_time_total for event in outermost)
    unwritten = [event for event in prof.events() if not event.stack or event.name.startswith(RUNNERS)]
    whole = sum(weights.values()) + sum(event.self_cpu_time_total for event in unwritten)
    # Each line has lost its fraction of a microsecond, and lines without a whole one are not there.
    assert total - len(prof.events()) <= whole <= total


def test_file_has_calls_and_gives_back_the_stacks(tmp_path: pathlib.Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3))
    prof = recorded(lambda: model(torch.ones(2, 3)))
    prof.export_chrome_trace(tmp_path / "trace.json")
    written = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    found = [event for event in written if event.get("cat") == "python_function"]
    names = {event["args"]["Python id"]: event["name"] for event in found}
    linear = next(event for event in found if event["name"] == "nn.Module: Linear_0")
    assert names[linear["args"]["Python parent id"]] == "nn.Module: Sequential_0"
    assert linear["args"]["Python module id"] == 0
    assert not [event for event in written if "Call stack" in event.get("args", {})], "the calls say it"
    again = kineto.read(tmp_path / "trace.json")
    for trace in (prof.trace, again):
        row = int(np.flatnonzero(trace.events["name"] == trace.names.index("aten::addmm"))[0])
        stack = [str(frame) for frame in trace.stack(int(trace.events["stack"][row]))]
        assert stack[:2] == ["nn.Module: Linear_0", "nn.Module: Sequential_0"]


def test_modules_are_calls() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    model = Net()

    def root() -> None:
        model(torch.ones(1, 2))
        model(torch.ones(1, 2))

    found = calls(recorded(root).trace)
    once = [("nn.Module: Net_0", label(root)), (label(Net.forward), "nn.Module: Net_0"),
            ("nn.Module: Linear_0", label(Net.forward)), ("nn.Module: Linear_1", label(Net.forward))]
    assert found[found.index(once[0]):] == once * 2


def test_custom_functions_of_autograd() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad.neg()

    prof = recorded(lambda: Twice.apply(torch.ones(2, requires_grad=True)).sum().backward())
    names = [short(name) for name, _ in calls(prof.trace)]
    assert label(Twice.forward) in names
    assert label(Twice.backward) in names
    neg = next(event for event in prof.events() if event.name == "aten::neg")
    assert neg.cpu_parent is not None
    assert neg.cpu_parent.name == "TwiceBackward"


def test_without_stacks_nothing_is_watched() -> None:
    with profile() as prof:
        assert sys.getprofile() is None
        outer()
    assert not prof.trace.has("stacks")
    assert not any(event.is_python_function for event in prof.events())


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=40))
def test_matching_by_columns_equals_walking(steps: list[tuple[bool, int]]) -> None:
    """On balanced records both agree; on others the walk decides, and calls never cross."""
    entries, codes, stack = [], [], []
    for enters, code in steps:
        if enters or not stack:
            stack.append(code)
            entries.append(1)
            codes.append(code)
        else:
            entries.append(-1)
            codes.append(stack.pop())
    fast = _match(np.array(entries, np.int64), np.array(codes, np.int64))
    slow = _match_by_walking(entries, codes)
    assert [column.tolist() for column in fast] == [column.tolist() for column in slow]


@given(st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(0, 3)), max_size=40))
def test_calls_never_cross_whatever_is_missing(steps: list[tuple[int, int]]) -> None:
    entries, codes = [entry for entry, _ in steps], [code for _, code in steps]
    enter, leave = _match(np.array(entries, np.int64), np.array(codes, np.int64))
    assert enter.tolist() == [row for row, entry in enumerate(entries) if entry > 0]
    ends = np.where(leave >= 0, leave, len(steps))
    for low, high in zip(enter.tolist(), ends.tolist(), strict=True):
        for other_low, other_high in zip(enter.tolist(), ends.tolist(), strict=True):
            assert not (low < other_low < high < other_high), "one call begins inside another and ends after it"


# -- built-in functions ------------------------------------------------------------------------------------------------


def test_built_in_functions_that_the_user_calls() -> None:
    def root() -> None:
        with contextlib.suppress(IndexError):
            [].pop()
        x = torch.ones(len("ab"))
        _ = x + x, x.shape, int("1")
        sorted([2, 1], key=lambda n: n)
        x.add_(1)

    root()
    trace = recorded(root).trace
    events = trace.events
    names = [short(trace.names[n]) for n in events["name"].tolist()]
    found = [name for name, above in zip(names, events["parent"].tolist())
             if name.startswith("<built-in ") and above >= 0 and names[above] == label(root)]
    assert found == ["<built-in method pop of list object>", "<built-in function len>",
                     "<built-in method ones of type object>", "<built-in function sorted>",
                     "<built-in method add_ of Tensor object>"]
    inside = [names[above] for name, above in zip(names, events["parent"].tolist()) if name.endswith(": <lambda>")]
    assert inside[-2:] == ["<built-in function sorted>"] * 2


def test_a_method_does_not_keep_its_object_alive() -> None:
    class Items(list[int]):
        pass

    def root() -> None:
        items = Items()
        items.append(1)
        alive.append(weakref.ref(items))

    alive: list[Any] = []
    with profile(with_stack=True):
        root()
        assert alive[0]() is None


# -- frames that come and go in unusual ways ---------------------------------------------------------------------------


def test_gathered_coroutines_on_one_thread() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        torch.ones(2).cos()
        raise ValueError("expected")

    async def works(n: int) -> Any:
        for _ in range(n):
            await asyncio.sleep(0)
            torch.ones(2).sin()
        return n

    async def root() -> None:
        found = await asyncio.gather(works(3), fails(), works(2), return_exceptions=True)
        assert found[0] == 3
        assert isinstance(found[1], ValueError)
        torch.ones(1).tan()

    prof = recorded(lambda: asyncio.run(root()))
    tops = [(event.name, frames(event)[0].rpartition(": ")[2]) for event in prof.events()
            if event.name in ("aten::sin", "aten::cos", "aten::tan")]
    assert sorted(tops) == [("aten::cos", "fails")] + [("aten::sin", "works")] * 5 + [("aten::tan", "root")]


def test_a_generator_closed_early_runs_its_cleanup() -> None:
    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            torch.ones(1).cos()

    def root() -> None:
        generator = numbers()
        next(generator)
        generator.close()
        torch.ones(1).tan()

    prof = recorded(root)
    [cleanup] = [event for event in prof.events() if event.name == "aten::cos"]
    assert [entry.rpartition(": ")[2] for entry in frames(cleanup)[:2]] == ["numbers", "root"]
    assert stack_of(prof, "aten::tan")[0] == at(root, 4)


def test_an_exception_through_many_frames_ends_them() -> None:
    def lowest() -> None:
        torch.ones(2).view(3)

    def middle() -> None:
        sorted([1], key=lambda _: lowest())

    def root() -> None:
        with contextlib.suppress(RuntimeError):
            middle()
        torch.ones(1).tan()

    prof = recorded(root)
    assert stack_of(prof, "aten::tan")[0] == at(root, 3)
    ended = {event.name.rpartition(": ")[2]: event.time_range.end for event in prof.events()
             if event.is_python_function}
    [last] = [event for event in prof.events() if event.name == "aten::tan"]
    assert max(ended["lowest"], ended["middle"], ended["<built-in function sorted>"]) <= last.time_range.start


def test_deep_recursion() -> None:
    def deep(n: int) -> Any:
        return deep(n - 1) if n else torch.ones(1).sin()

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(8000)
    try:
        prof = recorded(lambda: deep(4999))
    finally:
        sys.setrecursionlimit(before)
    rows = [name for name, _ in calls(prof.trace)]
    assert rows.count(label(deep)) == 5000
    assert stack_of(prof, "aten::sin")[:5000] == [at(deep, 1), *[label(deep)] * 4999]


def test_started_and_stopped_in_different_functions() -> None:
    prof = profile(with_stack=True)

    def starts() -> None:
        prof.start()
        torch.ones(1).sin()

    def stops() -> None:
        torch.ones(1).cos()
        prof.stop()
        torch.ones(1).tan()

    def root() -> None:
        starts()
        outer()
        stops()

    root()
    check(prof.trace)
    stacks = {event.name: frames(event)[:2] for event in prof.events() if event.name in ("aten::cos", "aten::tan")}
    assert stacks == {"aten::cos": [at(stops, 1), at(root, 1)]}
    first = next(event for event in prof.events() if event.name == "aten::sin")
    assert [entry.rpartition(": ")[2] for entry in frames(first)[:2]] == ["starts", "root"]
    spans = {event.name.rpartition(": ")[2]: event.time_range for event in prof.events() if event.is_python_function}
    assert spans["starts"].end <= spans["outer"].start <= spans["outer"].end <= spans["stops"].start
    assert spans["root"].start <= spans["starts"].start, "open at the start and at the end"
    assert spans["root"].end >= spans["stops"].end


def test_lines_are_in_chrome_traces(tmp_path):
    def program():
        x = torch.ones(3)
        with record_function("mine"):
            return x * 2

    with profile(with_stack=True, profile_memory=True) as prof:
        program()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace, again = prof.trace, torch.profiler.load(str(tmp_path / "trace.json")).trace
    first = program.__code__.co_firstlineno
    named = dict(zip([again.names[n] for n in again.events["name"].tolist()], again.events["line"].tolist()))
    assert [named[name] - first for name in ("aten::ones", "mine", "aten::mul")] == [1, 2, 3]
    assert again.events["line"].tolist() == trace.events["line"].tolist()
    assert again.memory["line"].tolist() == trace.memory["line"].tolist()
    assert any(again.memory["line"].tolist())
    assert [again.stack(n) for n in again.events["stack"].tolist()] == [
        trace.stack(n) for n in trace.events["stack"].tolist()]


def test_a_thread_that_never_stands_still():
    """If a recording begins while another thread calls and returns all the time, no call ends before it begins."""
    class Moving(python_calls.CallList):
        def __len__(self):
            count = super().__len__()
            for what in (EXIT, 0):
                self.flat += [python_calls.clock(), function.__code__, what]
            return count

    def function():
        return log.mark()

    log = python_calls.CallLog()
    thread = python_calls.thread_info(threading.current_thread())
    log.lanes.append(python_calls.CallLane(Moving(), thread, threading.get_ident()))
    mark = function()
    assert function.__code__ in [code for code, *_ in mark.bases[threading.get_ident()]]
    piece, = (piece for piece in log.since(mark, python_calls.clock()) if piece.info == thread)
    calls = paired(piece)
    assert len(calls.start_ns) > 2
    assert (calls.end_ns >= calls.start_ns).all()


def test_a_scope_that_begins_when_the_recording_has_ended(monkeypatch):
    """Another thread that has seen the recording begins its scope just before the open ones are taken."""
    scope = record_function("late")

    def late(log, mark, stretch):
        scope.start = stretch.end_ns + 1
        OPEN[scope] = threading.get_ident()
        return before(log, mark, stretch)

    before = Scopes.take
    monkeypatch.setattr(Scopes, "take", late)
    with profile() as prof:
        torch.ones(2)
    assert "late" not in {event.name for event in prof.events()}
    assert (prof.trace.duration_ns >= 0).all()


def test_built_in_functions_of_a_package_with_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that run as `python -m mindtorch_v2` know the package as `torch`."""
    monkeypatch.setattr(torch, "__name__", "torch")
    prof = recorded(lambda: torch.ones(2))
    assert "<built-in method ones of type object>" in {event.name for event in prof.events()}


def test_a_call_inside_a_scope_counts_once_in_the_call_around_both() -> None:
    x = torch.ones(64, 64)

    def inner() -> torch.Tensor:
        return x @ x

    def outer() -> torch.Tensor:
        with record_function("a scope"):
            return inner()

    prof = recorded(outer, profile_memory=True)
    scope, within, call = [next(e for e in prof.events() if key in e.name)
                           for key in ("a scope", label(inner), label(outer))]
    own = call.self_cpu_time_total
    assert within.cpu_memory_usage == scope.cpu_memory_usage == call.cpu_memory_usage == 64 * 64 * 4
    assert (call.self_cpu_memory_usage, own > 0) == (0, True)
    assert {scope, within} <= set(call.cpu_children)  # from here on, what follows from them is computed anew
    assert call.self_cpu_memory_usage == 0
    assert call.self_cpu_time_total == pytest.approx(own, abs=0.01)
