"""Stacks against the truth: programs ask the interpreter who called them, at places that are events of a recording."""

from __future__ import annotations

import _thread
import asyncio
import collections
import contextlib
import dataclasses
import functools
import gc
import itertools
import linecache
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.native import NATIVE
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.sources import python_calls
from mtprof.schema import Kind
from mtprof.tables.check import check
from mtprof.trace import Trace

WAYS = ["profile function"] + (["monitoring"] if sys.version_info >= (3, 12) else [])
# Before Python 3.11 the interpreter copies a frame's variables for a profile function that is written in Python, so
# that objects live on, and what their end calls is called while nobody listens.
KEEPS_OBJECTS = NATIVE is None and sys.version_info < (3, 11)
# A profile function written in Python is itself called too deep, and the interpreter removes it for that.
LOSES_TRACK = NATIVE is None

numbers = itertools.count()
truth: dict[str, list[str]] = {}
programs: list[Callable[[], object]] = []


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "profile function":
        monkeypatch.setattr(python_calls, "free_tool_id", lambda: None)
    return str(request.param)


def program(function: Callable[[], object]) -> Callable[[], object]:
    programs.append(function)
    return function


def place() -> int:
    """An event here, and the functions of this file that are open."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in (__file__, "<user>"):
            found.append(frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    name = f"place {next(numbers)}"
    truth[name] = found
    with record_function(name):
        torch.ones(2).sin()
    return 1


# -- programs ----------------------------------------------------------------------------------------------------------


@program
def generators_that_are_left() -> None:
    def numbers() -> Iterator[int]:
        try:
            for _ in range(3):
                yield place()
        finally:
            place()

    first, second = numbers(), numbers()
    next(first)
    next(second)
    next(first)
    place()
    first.close()
    place()
    thread = threading.Thread(target=lambda: (next(second), place()))
    thread.start()
    thread.join()
    next(second)
    place()
    if not KEEPS_OBJECTS:
        del second
        gc.collect()
    place()


@program
def what_is_thrown_into_generators() -> None:
    def inner() -> Iterator[int]:
        while True:
            try:
                yield place()
            except ValueError:
                place()

    def middle() -> Iterator[int]:
        try:
            yield from inner()
        except KeyError:
            yield place()

    def outer() -> Iterator[int]:
        yield from middle()
        place()

    def throws(generator: Any, error: type[Exception]) -> None:
        generator.throw(error())
        place()

    generator = outer()
    next(generator)
    throws(generator, ValueError)
    next(generator)
    throws(generator, ValueError)
    throws(generator, KeyError)
    place()
    assert next(generator, None) is None
    generator = outer()
    next(generator)
    with contextlib.suppress(IndexError):
        throws(generator, IndexError)
    place()

    def itself() -> Iterator[int]:
        """One that throws into another while it runs does not wait for it."""
        other = inner()
        next(other)
        other.throw(ValueError())
        yield place()

    list(itself())


@program
def coroutines_that_are_cancelled() -> None:
    async def works(times: int) -> None:
        for _ in range(times):
            place()
            await asyncio.sleep(0)

    async def waits() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            place()

    async def waits_for() -> None:
        try:
            await waits()
        finally:
            await asyncio.sleep(0)
            place()

    async def fails() -> None:
        await works(1)
        raise ValueError("expected")

    async def yields() -> Any:
        for _ in range(2):
            yield place()
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(waits_for())
        await asyncio.gather(works(3), works(2), fails(), return_exceptions=True)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        place()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(waits_for(), 0.01)
        async for _ in yields():
            place()
        await asyncio.get_running_loop().run_in_executor(None, place)

    asyncio.run(main())
    place()


@program
def exceptions_through_everything() -> None:
    def deep(n: int) -> None:
        if not n:
            place()
            raise ValueError("expected")
        try:
            deep(n - 1)
        finally:
            place()

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        place()
        try:
            yield
        finally:
            place()

    with contextlib.suppress(ValueError), around(), around():
        deep(5)
    place()
    with contextlib.suppress(ValueError):
        sorted([2, 1], key=lambda n: deep(n))  # type: ignore[arg-type,return-value]
    place()
    with contextlib.suppress(RuntimeError):
        torch.ones(2) @ torch.ones(3)
    place()
    with contextlib.suppress(RuntimeError):
        torch.nn.Linear(3, 3)(torch.ones(4))
    place()


@program
def recursion() -> None:
    def down(n: int) -> int:
        return place() if not n else down(n - 1)

    def without_end() -> None:
        without_end()

    down(300)
    place()
    if not LOSES_TRACK:
        with contextlib.suppress(RecursionError):
            without_end()
    place()


@program
def calls_by_c() -> None:
    class User:
        def __missing__(self, key: int) -> int:
            return place()

        def __eq__(self, other: object) -> bool:
            return bool(place())

        __hash__ = None  # type: ignore[assignment]

        def __getattr__(self, name: str) -> int:
            return place()

        def __iter__(self) -> Iterator[int]:
            yield place()

        def __len__(self) -> int:
            return place()

        def __enter__(self) -> None:
            place()

        def __exit__(self, *exception: object) -> None:
            place()

        def __del__(self) -> None:
            if not KEEPS_OBJECTS:
                place()

        @property
        def field(self) -> int:
            return place()

    def key(n: int) -> int:
        return place() + n

    user = User()
    assert user == 3
    _ = user.field, user.other, len(user), list(user)
    with user:
        place()
    del user
    _ = sorted([2, 1], key=key), max([1, 2], key=key), list(map(key, [1])), list(filter(key, [1]))
    functools.partial(key, 3)()
    functools.reduce(lambda a, b: place(), [1, 2, 3])
    functools.lru_cache(key)(1)
    re.sub("a", lambda match: str(place()), "aa")
    _ = collections.defaultdict(place)[1], sum(place() for _ in range(2)), ",".join(str(place()) for _ in range(2))
    np.apply_along_axis(lambda row: row * place(), 0, np.ones((2, 2)))
    place()


@program
def code_of_all_kinds() -> None:
    _ = [place() for _ in range(2)], {place() for _ in range(2)}, {n: [place() for _ in range(2)] for n in range(2)}
    (lambda: (lambda: place())())()
    exec(compile("def user():\n    place()\nuser()\nplace()", "<user>", "exec"), {"place": place})
    eval(compile("[place() for _ in range(2)]", "<user>", "eval"), {"place": place})

    def decorated(function: Callable[[], int]) -> Callable[[], int]:
        @functools.wraps(function)
        def around() -> int:
            return place() + function()
        return around

    decorated(decorated(place))()

    class Meta(type):
        def __call__(cls, *args: Any) -> Any:
            place()
            return super().__call__(*args)

    class Made(metaclass=Meta):
        inside = sum([place() for _ in range(2)])

        class Inner:
            inside = place()

        def __init__(self) -> None:
            place()

    Made()

    @dataclasses.dataclass
    class Data:
        field: int = dataclasses.field(default_factory=place)

        def __post_init__(self) -> None:
            place()

    Data()


@program
def threads_of_all_kinds() -> None:
    def work(times: int) -> None:
        for _ in range(times):
            with record_function("mine"):
                place()

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2)] + [threading.Timer(0.001, place)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, [1, 2]))
    done = threading.Event()

    def unknown() -> None:
        """On a thread that `threading` does not know; its first event is the one here."""
        place()
        done.set()

    _thread.start_new_thread(unknown, ())
    done.wait(10)
    place()


@program
def what_this_package_calls() -> None:
    class Twice(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            place()
            return super().forward(x) * 2

    class Data(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            place()
            return torch.ones(3)

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), Twice(3, 3))
    model[0].register_forward_hook(lambda *args: place() and None)
    model[1].register_forward_pre_hook(lambda *args: place() and None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure() -> Any:
        place()
        loss = model(next(iter(torch.utils.data.DataLoader(Data(), batch_size=2)))).sum()
        loss.register_hook(lambda gradient: gradient * place())
        loss.backward()
        return loss

    optimizer.step(closure)
    place()


@program
def profile_functions_of_the_program() -> None:
    def function() -> int:
        return place()

    before = sys.getprofile()
    sys.setprofile(lambda *args: None)
    sys.setprofile(before)
    function()
    sys.settrace(lambda *args: None)
    function()
    sys.settrace(None)
    place()


# -- what is checked ---------------------------------------------------------------------------------------------------


def ops(trace: Trace) -> collections.Counter[tuple[str, str]]:
    """All that is no Python call and no first use, with what is around it."""
    events = trace.events
    # What is used for the first time is so in one of two recordings only.
    python = np.isin(events["kind"], [Kind.PYTHON, Kind.MODULE, Kind.FIRST_USE])
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    for row in np.flatnonzero(~python & (events["kind"] != Kind.FIRST_USE)).tolist():
        parent = int(events["parent"][row])
        while parent >= 0 and python[parent]:
            parent = int(events["parent"][parent])
        name, around = (trace.names[events["name"][r]] if r >= 0 else "" for r in (row, parent))
        found[name.rstrip("0123456789 "), around.rstrip("0123456789 ")] += 1
    return found


@pytest.mark.parametrize("run", programs, ids=lambda function: function.__name__)
def test_stacks_are_true(run: Callable[[], object], way: str) -> None:
    with profile() as plain:
        run()
    truth.clear()
    with profile(with_stack=True) as prof:
        run()
    check(prof.trace)
    assert ops(prof.trace) == ops(plain.trace)
    events = {event.name: event for event in prof.events()}
    assert len(truth) >= 3
    shown = {name: [entry.rpartition(": ")[2] for entry in events[name].stack
                    if "test_profiler_stack_truth.py(" in entry or entry.startswith("<user>")] for name in truth}
    assert shown == {name: ["place", *functions] for name, functions in truth.items()}
    assert min(event.self_cpu_time_total for event in prof.events()) >= 0


# -- lines -------------------------------------------------------------------------------------------------------------


def line() -> int:
    """The line on which this is called."""
    return sys._getframe(1).f_lineno


def test_lines_are_true(way: str) -> None:
    """A line is in the frame that it belongs to: not in a built-in function, a module or a function of ours."""
    expected: dict[str, tuple[str, int]] = {}

    class Doubles(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            expected["aten::sinh"] = "forward", line() + 1
            return x.sinh()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            expected["aten::cosh"] = "backward", line() + 1
            return grad.cosh()

    class Layer(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            expected["aten::elu"] = "forward", line() + 1
            return torch.nn.functional.elu(x)

    def root() -> None:
        with record_function("scope"):
            x = torch.rand(3, requires_grad=True)
            expected["aten::exp"] = "root", line() + 1
            y = torch.exp(x)
            layer = torch.nn.Sequential(Layer(), torch.nn.Softplus())
            expected["aten::softplus"] = "root", line() + 1
            y = layer(y)
            expected["aten::tan"] = "<lambda>", line() + 1
            y = max([y, y], key=lambda one: float(one.detach().tan().sum()))
            y = Doubles.apply(y).sum()
            expected["aten::ones_like"] = expected["EluBackward0"] = "root", line() + 1
            y.backward()

    for _ in range(2):  # the first time, ops are made ready, at lines that nobody knows
        with profile(with_stack=True) as prof:
            root()
        trace = prof.trace
        events = trace.events
        found = {}
        for row, name in enumerate(events["name"].tolist()):
            frames = [frame for frame in trace.stack(events["stack"][row]) if frame.file.endswith("stack_truth.py")]
            if trace.names[name] in expected:
                found[trace.names[name]] = frames[0].function, frames[0].line
                assert events["line"][row] == frames[0].line
        assert found == expected
        # Frames of ours have the lines of their functions.
        package = os.path.dirname(os.path.dirname(torch.__file__))
        for entry in {entry for event in prof.events() for entry in event.stack if entry.startswith("mindtorch_v2/")}:
            file, number, name = re.match(r"(.*)\((\d+)\): (\w+)", entry).groups()  # type: ignore[union-attr]
            text = "".join(linecache.getline(os.path.join(package, file), int(number) + more) for more in range(3))
            assert f"def {name}" in text, entry


def test_lines_of_what_has_none_of_its_own(way: str) -> None:
    """Memory that is released in a scope, or in a function that an op calls, is not released on the line of these."""
    def root() -> None:
        with record_function("scope"):
            x = torch.ones(1000)
            del x
            gc.collect()

    with profile(with_stack=True, profile_memory=True) as prof:
        root()
    memory = prof.trace.memory
    first = root.__code__.co_firstlineno
    sizes = zip(memory["size_bytes"].tolist(), memory["line"].tolist())
    assert [one for one in sizes if abs(one[0]) == 4000] == [(4000, first + 2), (-4000, 0)]
