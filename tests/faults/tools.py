"""What several cases need."""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable
from typing import Any


def check_recorder() -> None:
    """Nothing records now, and the next recordings, of every kind, are whole."""
    import mindtorch_v2 as torch

    assert not torch.autograd._profiler_enabled(), "a recording is still on"
    for options in ({}, {"record_shapes": True, "profile_memory": True}, {"with_stack": True, "with_modules": True},
                    {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True}):
        model = torch.nn.Linear(3, 2)
        with torch.profiler.profile(**options) as prof:
            model(torch.ones(4, 3)).sum().backward()
        names = [event.name for event in prof.events()]
        for name in ("aten::ones", "aten::linear", "aten::addmm", "aten::sum", "AddmmBackward0"):
            assert name in names, f"{name} is missing with {options}: {names}"
        for event in prof.events():
            assert event.time_range.start >= 0, f"{event.name} begins at {event.time_range.start}"
            assert event.time_range.end >= event.time_range.start, f"{event.name} ends before it begins"
        if "with_stack" in options:
            assert any(event.stack for event in prof.events()), "there are no stacks"
    assert not torch.autograd._profiler_enabled()


def resident_mb() -> float:
    """How much memory this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb() -> float:
    """How much memory this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def grows_linearly(work: Callable[[int], Any], small: int, factor: int = 4, most: float = 2.2) -> None:
    """Whether `factor` times as much takes not much more than `factor` times as long, the least of three each."""
    def least(size: int) -> float:
        best = float("inf")
        for _ in range(3):
            gc.collect()
            began = time.process_time()
            work(size)
            best = min(best, time.process_time() - began)
        return best

    first, second = least(small), least(small * factor)
    ratio = second / max(first, 0.01)
    assert ratio < factor * most, (f"{small}: {first:.2f} s, {small * factor}: {second:.2f} s, "
                                   f"which is {ratio:.1f} times as long")


def raises(kinds: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], Any],
           word: str = "") -> BaseException:
    """The error that a call raises; its text has to contain a word."""
    try:
        made = call()
    except kinds as error:
        assert word in str(error), f"{type(error).__name__} does not say {word!r}: {error}"
        return error
    raise AssertionError(f"no error, but {made!r}")
