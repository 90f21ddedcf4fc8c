"""What recording costs real training steps: the extra time per step in each mode, here and in PyTorch.

The models are small and run on one thread, so that what recording adds is not lost in what computing varies, and
processor time is counted, which other programs on the machine change little. A round is some steps without and some
with a profiler, close to each other; the difference of their medians is one sample of the extra time. Rounds of both
sides take turns. Drawing rounds anew, with repetitions (a bootstrap), shows how far the ratio could have come out;
there is a verdict only where 90 % of that lies on one side of the aim.

PyTorch's `with_modules` is for TorchScript and costs these models nothing, so `modules` compares with plain recording.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
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
    "MLP": lambda torch: mlp(torch, features=64, hidden=32, batch=4),
    "CNN": lambda torch: cnn(torch, batch=1, channels=4),
    "GPT": lambda torch: gpt(torch, layers=1, width=32, heads=2, batch=1, length=16),
    "LSTM": lambda torch: lstm(torch, features=16, hidden=16, batch=2, length=8),
}
AIM = 0.8
STEPS = 8  # in each half of a round
ROUNDS = 60
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def median_seconds(step: Work) -> float:
    """What a step takes; each is timed by itself, so that a disturbance spoils one value of several."""
    times = []
    for _ in range(STEPS):
        start = process_time()
        step()
        times.append(process_time() - start)
    return statistics.median(times)


def recorded_seconds(torch: Any, step: Work, options: dict[str, bool]) -> float:
    """The same while it is recorded."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options):
        return median_seconds(step)


def measure(steps: list[Work], options: dict[str, bool]) -> np.ndarray:
    """Extra seconds per step: a row for each side, a column for each round."""
    modules: list[Any] = [ours, theirs]
    extra = np.empty((2, ROUNDS))
    for torch, step in zip(modules, steps):
        recorded_seconds(torch, step, options)
    gc.collect()
    gc.disable()
    try:
        for r in range(ROUNDS):
            for side, (torch, step) in enumerate(zip(modules, steps)):
                # Which half comes first alternates, so that a machine that slows down or speeds up favours neither.
                if r % 2:
                    plain = median_seconds(step)
                    extra[side, r] = recorded_seconds(torch, step, options) - plain
                else:
                    extra[side, r] = recorded_seconds(torch, step, options)
                    extra[side, r] -= median_seconds(step)
    finally:
        gc.enable()
    return extra


def row(name: str, extra: np.ndarray) -> str:
    """Both sides' median extra time, their ratio, and where 90 % of the ratios of redrawn rounds lie."""
    mine, other = np.median(extra, axis=1)
    draws = np.random.default_rng(0).integers(0, ROUNDS, (2000, ROUNDS))
    redrawn = np.median(extra[:, draws], axis=2)
    times = f"{name:<14} {mine * 1e6:8.0f} {other * 1e6:8.0f} us"
    if redrawn[1].min() <= 0:
        return f"{times}  the machine is too busy to tell"
    low, high = np.quantile(redrawn[0] / redrawn[1], [0.05, 0.95])
    verdict = "ok" if high <= AIM else "MISSED" if low > AIM else "unclear"
    return f"{times}  ratio {mine / other:5.2f} ({low:5.2f} to {high:5.2f})  aim <= {AIM:g} {verdict}"


def main() -> None:
    """Print the extra time per step."""
    warnings.simplefilter("ignore")
    theirs.set_num_threads(1)
    print("\nrecording a training step, extra processor time: ours, PyTorch, ratio (where 90 % of redrawn ratios lie)")
    for name, build in CASES.items():
        steps = [build(ours), build(theirs)]
        for mode, options in MODES.items():
            print(row(f"{name} {mode}", measure(steps, options)), flush=True)


def run() -> None:
    """Measure in a process of its own, because the number of threads is fixed when a library is loaded."""
    sys.stdout.flush()
    subprocess.run([sys.executable, "-m", "benchmarks.recording_models"], env={**os.environ, **ONE_THREAD}, check=True)


if __name__ == "__main__":
    main()
