"""Threads that start, stop and use everything at once."""

from __future__ import annotations

import contextlib
import pathlib
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..registry import case
from ..tools import check_recorder


def _hammer(work: list[Callable[[random.Random], None]], seconds: float) -> None:
    """Run functions on threads of their own, again and again, switching as often as Python can."""
    errors: list[BaseException] = []
    end = time.monotonic() + seconds
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def loop(one: Callable[[random.Random], None], seed: int) -> None:
        chance = random.Random(seed)
        try:
            while time.monotonic() < end and not errors:
                one(chance)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=loop, args=(one, seed)) for seed, one in enumerate(work)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    if errors:
        raise errors[0]


def _workers(torch: Any) -> list[Callable[[random.Random], None]]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))

    def forward(chance: random.Random) -> None:
        model(torch.ones(2, 3))

    def backward(chance: random.Random) -> None:
        x = torch.ones(2, 3, requires_grad=True)
        (x * x).sum().backward()

    def scopes(chance: random.Random) -> None:
        with torch.profiler.record_function(f"scope {chance.randrange(50)}"):
            torch.ones(chance.randrange(5))

    def failing(chance: random.Random) -> None:
        with contextlib.suppress(RuntimeError):
            torch.ones(2) @ torch.ones(3)

    def modules(chance: random.Random) -> None:
        torch.nn.Linear(2, 2)(torch.ones(1, 2))

    def children(chance: random.Random) -> None:
        thread = threading.Thread(target=lambda: torch.ones(1) + 1)
        thread.start()
        thread.join()

    return [forward, backward, scopes, failing, modules, children]


_OPTIONS = ({}, {"record_shapes": True}, {"profile_memory": True}, {"with_stack": True}, {"with_modules": True},
            {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True})


@case(seconds=120, PYTHONMALLOC="debug", quick=False)
def recordings_while_threads_work(directory: pathlib.Path) -> None:
    """One thread starts and stops recordings of all kinds while others work: each is whole and sound."""
    import mindtorch_v2 as torch

    def record(chance: random.Random) -> None:
        options = chance.choice(_OPTIONS)
        with torch.profiler.profile(**options) as prof:
            torch.arange(3).add(1)
        found = {event.name for event in prof.events()}
        assert {"aten::arange", "aten::add"} <= found, (options, found)
        assert all(event.self_cpu_time_total >= 0 for event in prof.events())
        prof.export_chrome_trace(directory / "t.json")

    _hammer([record, *_workers(torch)], 8)
    check_recorder()


@case(seconds=120, PYTHONMALLOC="debug", quick=False)
def recordings_on_all_threads(directory: pathlib.Path) -> None:
    """Threads that each start and stop profilers of their own, overlapping, each get what they ran."""
    import mindtorch_v2 as torch

    def record(chance: random.Random) -> None:
        with torch.profiler.profile(**chance.choice(_OPTIONS)) as prof:
            torch.arange(3).add(1)
            if chance.random() < 0.3:
                with torch.profiler.profile():
                    torch.zeros(2)
        found = {event.name for event in prof.events()}
        assert {"aten::arange", "aten::add"} <= found, found

    _hammer([record] * 4 + _workers(torch)[:2], 8)
    check_recorder()


@case(seconds=120)
def results_read_by_many(directory: pathlib.Path) -> None:
    """One recording's results can be asked for by many threads at once."""
    import mindtorch_v2 as torch

    for _ in range(5):
        with torch.profiler.profile(**_OPTIONS[-1]) as prof:
            model = torch.nn.Linear(3, 2)
            for _ in range(20):
                model(torch.ones(2, 3)).sum().backward()
        expected: list[Any] = []

        def read(chance: random.Random, prof: Any = prof, expected: list[Any] = expected) -> None:
            rows = [(row.key, row.count) for row in prof.key_averages()]
            expected.append(rows)
            assert rows == expected[0]
            prof.key_averages(group_by_input_shape=True).table()
            [event.stack for event in prof.events()]
            prof.module_tree()

        _hammer([read] * 4, 1)


@case(seconds=120, quick=False)
def a_daemon_at_the_end(directory: pathlib.Path) -> None:
    """A program ends cleanly while daemon threads work and record."""
    import subprocess

    code = """
import threading, mindtorch_v2 as torch
def work():
    while True:
        with torch.profiler.profile(with_stack=True, record_shapes=True, profile_memory=True):
            (torch.ones(3, requires_grad=True) * 2).sum().backward()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
import time; time.sleep(0.5)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-500:]
        assert "Fatal" not in done.stderr, done.stderr[-500:]


@case(seconds=90)
def async_tasks(directory: pathlib.Path) -> None:
    """Scopes of asyncio tasks that take turns on one thread leave a sound tree."""
    import asyncio

    import mindtorch_v2 as torch

    async def task(number: int) -> None:
        with torch.profiler.record_function(f"task {number}"):
            for _ in range(3):
                torch.ones(2) + number
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(task(number) for number in range(20)))

    with torch.profiler.profile(**_OPTIONS[-1]) as prof:
        asyncio.run(main())
    assert sum(event.name.startswith("task ") for event in prof.events()) == 20
    assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    prof.export_chrome_trace(directory / "t.json")


@case(seconds=90)
def generators_that_are_abandoned(directory: pathlib.Path) -> None:
    """Scopes inside generators that are never finished end with the generator, wherever that is."""
    import mindtorch_v2 as torch

    def items() -> Any:
        with torch.profiler.record_function("inside"):
            yield torch.ones(1)
            yield torch.ones(2)

    with torch.profiler.profile(**_OPTIONS[-1]) as prof:
        kept = [items() for _ in range(5)]
        for one in kept:
            next(one)
    kept.clear()
    assert all(event.self_cpu_time_total >= 0 for event in prof.events())
    check_recorder()
