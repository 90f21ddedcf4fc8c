"""What recording costs: the extra time per op in each mode, and the cost of a user's scope."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch as theirs

import mindtorch_v2 as ours

from .timing import best_of, line

MODES: dict[str, tuple[dict[str, bool], float]] = {
    "plain": ({}, 0.7),
    "shapes": ({"record_shapes": True}, 0.7),
    "memory": ({"profile_memory": True}, 0.7),
    "stacks": ({"with_stack": True}, 3.0),
    "all": ({"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}, 0.7),
}
COUNT = 20_000


def loop(torch: Any) -> Callable[[], None]:
    """Many small ops."""
    x = torch.ones(4, 4)
    y = torch.ones(4, 4)
    multiply = torch.mul

    def run() -> None:
        for _ in range(COUNT):
            multiply(x, y)

    return run


def extra_seconds(options: dict[str, bool], rounds: int = 9) -> list[float]:
    """Seconds that recording adds to one op, here and in PyTorch: best recorded round minus best plain round.

    The rounds of both take turns, so that a machine that changes its speed changes both.
    """
    modules: list[Any] = [ours, theirs]
    loops = [loop(torch) for torch in modules]
    plain, recorded = [float("inf")] * 2, [float("inf")] * 2
    for _ in range(rounds):
        for i, torch in enumerate(modules):
            start = perf_counter()
            loops[i]()
            plain[i] = min(plain[i], perf_counter() - start)
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options):
                start = perf_counter()
                loops[i]()
                recorded[i] = min(recorded[i], perf_counter() - start)
    return [max((r - p) / COUNT, 1e-10) for r, p in zip(recorded, plain)]


def scope(torch: Any) -> Callable[[], None]:
    """One user scope."""
    record = torch.profiler.record_function

    def run() -> None:
        with record("scope"):
            pass

    return run


def run() -> None:
    """Print the costs."""
    warnings.simplefilter("ignore")
    theirs.set_num_threads(1)
    print("\nrecording an op, extra time: ours, PyTorch, ratio")
    for name, (options, aim) in MODES.items():
        mine, other = extra_seconds(options)
        print(line(name, mine, other, aim))
    print("\nrecord_function: ours, PyTorch, ratio")
    mine, other = best_of([scope(ours), scope(theirs)])
    print(line("idle", mine, other, 0.1))
    with ours.profiler.profile(), theirs.profiler.profile():
        mine, other = best_of([scope(ours), scope(theirs)], rounds=3, seconds=0.02)
    print(line("active", mine, other, 0.2))
