"""What recording costs real training steps: the extra time per step in each mode, here and in PyTorch.

The models are small, so that what recording adds is not lost in what computing varies. Steps with and without a
profiler follow each other closely, on both sides in turn, and the difference of their medians counts. PyTorch's
`with_modules` is for TorchScript and costs these models nothing, so `modules` compares with PyTorch's plain recording.
"""

from __future__ import annotations

import gc
import statistics
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch as theirs

import mindtorch_v2 as ours

from .mlp import step_of as mlp
from .models import cnn, gpt, lstm
from .timing import Work

MODES: dict[str, dict[str, bool]] = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stacks": {"with_stack": True},
    "modules": {"with_modules": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True,
            "with_flops": True},
}
CASES: dict[str, Callable[[Any], Work]] = {
    "MLP": mlp,
    "CNN": lambda torch: cnn(torch, batch=1),
    "GPT": lambda torch: gpt(torch, layers=1, width=32, heads=2, batch=1, length=16),
    "LSTM": lambda torch: lstm(torch, features=16, hidden=16, batch=2, length=8),
}
AIM = 0.8
STEPS = 10  # per recording
ROUNDS = 12


def seconds(step: Work, times: list[float]) -> None:
    """Note what steps take, each by itself: a disturbance then spoils one value of many."""
    for _ in range(STEPS):
        start = perf_counter()
        step()
        times.append(perf_counter() - start)


def recorded_seconds(torch: Any, step: Work, options: dict[str, bool], times: list[float]) -> None:
    """The same while they are recorded."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options):
        seconds(step, times)


def measure(steps: list[Work], options: dict[str, bool]) -> list[tuple[list[float], list[float]]]:
    """Times of plain and of recorded steps, of both sides."""
    modules: list[Any] = [ours, theirs]
    found: list[tuple[list[float], list[float]]] = [([], []), ([], [])]
    for torch, step in zip(modules, steps):
        recorded_seconds(torch, step, options, [])
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for torch, step, (plain, recorded) in zip(modules, steps, found):
                seconds(step, plain)
                recorded_seconds(torch, step, options, recorded)
    finally:
        gc.enable()
    return found


def row(name: str, measured: list[tuple[list[float], list[float]]]) -> str:
    """What recording adds to the median, between the quartiles, and the ratio of the two sides' medians."""
    parts, medians, clear = [], [], True
    for plain, recorded in measured:
        low, middle, high = (after - before for before, after in zip(
            statistics.quantiles(plain, n=4), statistics.quantiles(recorded, n=4)))
        medians.append(middle)
        # Recording costs the quick steps and the slow ones about the same; where it seems not to, something else did.
        clear &= middle > 0 and max(abs(low - middle), abs(high - middle)) <= middle
        parts.append(f"{middle * 1e6:7.0f} ({low * 1e6:5.0f} to {high * 1e6:5.0f})")
    if not clear:
        return f"{name:<14} {parts[0]} {parts[1]} us  the machine is too busy to tell"
    ratio = medians[0] / medians[1]
    return (f"{name:<14} {parts[0]} {parts[1]} us  ratio {ratio:5.2f}  aim <= {AIM:g} "
            f"{'ok' if ratio <= AIM else 'MISSED'}")


def run() -> None:
    """Print the extra time per step."""
    warnings.simplefilter("ignore")
    theirs.set_num_threads(1)
    print("\nrecording a training step, extra time by medians (by lower and upper quartiles): ours, PyTorch, ratio")
    for name, build in CASES.items():
        steps = [build(ours), build(theirs)]
        for mode, options in MODES.items():
            print(row(f"{name} {mode}", measure(steps, options)), flush=True)
