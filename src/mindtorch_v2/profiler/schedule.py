"""When to record: actions per step, and `schedule`, which makes the usual pattern of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum


class ProfilerAction(Enum):
    """What the profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Skip `skip_first` steps, then cycle through `wait`, `warmup` and `active` steps, `repeat` times (0: forever).

    A `skip_first_wait` other than 0 leaves out the wait of the first cycle.

    >>> import mindtorch_v2 as torch
    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", UserWarning, stacklevel=2)
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        position = step - skip_first
        if position < 0:
            return ProfilerAction.NONE
        if skip_first_wait != 0:
            position += wait
        if repeat > 0 and position >= repeat * cycle:
            return ProfilerAction.NONE
        inside = position % cycle
        if inside < wait:
            return ProfilerAction.NONE
        if inside < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if inside < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def always(step: int) -> ProfilerAction:
    """The schedule of a profiler without one."""
    return ProfilerAction.RECORD
