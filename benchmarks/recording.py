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


def extra_seconds(torch: Any, options: dict[str, bool], rounds: int = 5) -> float:
    """Seconds that recording adds to one op: best recorded round minus best plain round."""
    run = loop(torch)
    profiler = torch.profiler
    plain = recorded = float("inf")
    for _ in range(rounds):
        start = perf_counter()
        run()
        plain = min(plain, perf_counter() - start)
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **options):
            start = perf_counter()
            run()
            recorded = min(recorded, perf_counter() - start)
    return max((recorded - plain) / COUNT, 1e-10)


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
        print(line(name, extra_seconds(ours, options), extra_seconds(theirs, options), aim))
    print("\nrecord_function: ours, PyTorch, ratio")
    mine, other = best_of([scope(ours), scope(theirs)])
    print(line("idle", mine, other, 0.1))
    with ours.profiler.profile(), theirs.profiler.profile():
        mine, other = best_of([scope(ours), scope(theirs)], rounds=3, seconds=0.02)
    print(line("active", mine, other, 0.2))
