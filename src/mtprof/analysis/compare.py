"""Two recordings compared, with change separated from noise.

If both have several steps, each row is compared by its time per step: the difference of the means over the steps, with
its 95 % interval (Welch's, for means of samples with different spread). Steps of the warm-up do not count. Steps far
outside the others, such as those interrupted by another program, are first drawn in to the edge of the rest. A change
counts if its interval excludes zero and it is larger than 1 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..schema import PYTHON_KINDS, Kind
from ..views.step_summary import PARTS
from .figures import time_text

if TYPE_CHECKING:
    from .analysis import Analysis

LEAST_CHANGE = 0.01
FEWEST_STEPS = 3


class Change(Enum):
    """The verdict on a row."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"  # any difference is within the noise, or below 1 %
    UNKNOWN = "unknown"  # too few steps to tell noise from change
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True)
class Difference:
    """A row of both recordings: nanoseconds per step (or of the whole recording without steps)."""

    name: str
    before_ns: float
    after_ns: float
    difference_ns: float
    low_ns: float | None  # ends of the 95 % interval of the difference; None if unknown
    high_ns: float | None
    change: Change
    before_calls: float = 0.0  # per step
    after_calls: float = 0.0

    @property
    def ratio(self) -> float | None:
        """Relative change, 0.05 for 5 % slower; None if it took no time before."""
        return self.difference_ns / self.before_ns if self.before_ns else None

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, and the ratio."""
        return {**asdict(self), "change": self.change.value, "ratio": self.ratio}


@dataclass(frozen=True)
class Comparison:
    """Differences by op, module and part of a step, the largest first, and of the step as a whole."""

    step: Difference
    parts: list[Difference]
    operators: list[Difference]
    modules: list[Difference]
    before_steps: int
    after_steps: int
    peak_bytes: tuple[int, int] | None  # memory peaks before and after, if both recorded memory

    @property
    def summary(self) -> str:
        """One sentence."""
        step = self.step
        what = "A step" if self.before_steps > 1 or self.after_steps > 1 else "The recording"
        ratio = f"{step.ratio:+.1%}" if step.ratio is not None else "new"
        around = ""
        if step.low_ns is not None and step.high_ns is not None and step.before_ns:
            around = f" (95 % interval {step.low_ns / step.before_ns:+.1%} to {step.high_ns / step.before_ns:+.1%})"
        words = {Change.SLOWER: "slower", Change.FASTER: "faster", Change.SAME: "no change beyond noise",
                 Change.UNKNOWN: "too few steps to tell change from noise"}.get(step.change, step.change.value)
        return (f"{what}: {time_text(step.before_ns)} before, {time_text(step.after_ns)} after, {ratio}{around}: "
                f"{words}.")

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {"summary": self.summary, "step": self.step.to_dict(), "before_steps": self.before_steps,
                "after_steps": self.after_steps, "peak_bytes": self.peak_bytes,
                **{key: [row.to_dict() for row in getattr(self, key)] for key in ("parts", "operators", "modules")}}


def compare(before: Analysis, after: Analysis) -> Comparison:
    """Compare two recordings of the same program."""
    samples = _Samples(before), _Samples(after)
    wall = [part.steps_ns() for part in samples]
    peaks = [analysis.memory_peaks for analysis in (before, after)]
    return Comparison(
        _difference("step", *wall), _rows(samples, _Samples.parts), _rows(samples, _Samples.operators),
        _rows(samples, _Samples.modules), len(wall[0]), len(wall[1]),
        (peaks[0][0].peak_bytes, peaks[1][0].peak_bytes) if all(peaks) else None)


Series = dict[str, tuple[np.ndarray, float]]  # by name: nanoseconds in each step, and calls per step


class _Samples:
    """Times per step of one recording, without its warm-up."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.warmup = analysis.breakdown.warmup
        self.count = max(1, len(analysis.steps) - self.warmup)

    def steps_ns(self) -> np.ndarray:
        return self.analysis.steps.duration_ns[self.warmup:].astype(np.float64)

    def parts(self) -> Series:
        rows = self.analysis.breakdown.steady
        return {part: (np.array([1000 * row.part_us(part) for row in rows]), 1.0) for part in PARTS}

    def operators(self) -> Series:
        """Self times of events that are not Python calls, on all threads."""
        trace = self.analysis.trace
        kinds = trace.events["kind"]
        rows = np.flatnonzero(~np.isin(kinds, PYTHON_KINDS) & (kinds != Kind.STEP))
        return self._by(rows, trace.events["name"][rows], trace.self_ns()[rows], trace.names.__getitem__)

    def modules(self) -> Series:
        """Times of calls of modules."""
        trace = self.analysis.trace
        if not (trace.has("module_calls") and trace.has("modules")):
            return {}
        calls, modules = trace.module_calls, trace.modules
        path = modules["path"][calls["module"]]
        elapsed = calls["end_ns"] - calls["start_ns"]
        step = self.analysis.steps.of(calls["start_ns"]) - self.warmup
        return self._series(step, path, elapsed, trace.names.__getitem__)

    def _by(self, rows: np.ndarray, key: np.ndarray, value: np.ndarray, text: Callable[[int], str]) -> Series:
        return self._series(self.analysis.steps.of(self.analysis.trace.events["start_ns"][rows]) - self.warmup, key,
                            value, text)

    def _series(self, step: np.ndarray, key: np.ndarray, value: np.ndarray, text: Callable[[int], str]) -> Series:
        inside = step >= 0
        step, key, value = step[inside], key[inside], value[inside]
        keys, group = np.unique(key, return_inverse=True)
        group = group.reshape(-1)
        cells = np.bincount(group * self.count + step, value, len(keys) * self.count).reshape(len(keys), self.count)
        calls = np.bincount(group, minlength=len(keys)) / self.count
        found: Series = {}
        for place, number in enumerate(keys.tolist()):
            name = text(number)
            known = found.get(name)
            found[name] = (cells[place] + (known[0] if known else 0), float(calls[place]) + (known[1] if known else 0))
        return found


def _rows(samples: Sequence[_Samples], ask: Callable[[_Samples], Series]) -> list[Difference]:
    before, after = (ask(part) for part in samples)
    nothing = np.zeros(0), 0.0
    rows = [_difference(name, before.get(name, nothing)[0], after.get(name, nothing)[0], before.get(name, nothing)[1],
                        after.get(name, nothing)[1]) for name in {**before, **after}]
    return sorted(rows, key=lambda row: (-abs(row.difference_ns), row.name))


def _difference(name: str, before: np.ndarray, after: np.ndarray, before_calls: float = 0.0,
                after_calls: float = 0.0) -> Difference:
    if not len(before) or not len(after):
        kept = after if len(after) else before
        mean = float(kept.mean()) if len(kept) else 0.0
        change = Change.NEW if len(after) else Change.GONE
        ends = (mean, 0.0) if len(before) else (0.0, mean)
        return Difference(name, *ends, ends[1] - ends[0], None, None, change, before_calls, after_calls)
    before, after = drawn_in(before), drawn_in(after)
    means = float(before.mean()), float(after.mean())
    difference = means[1] - means[0]
    half = half_interval(before, after)
    if half is None:
        return Difference(name, *means, difference, None, None, Change.UNKNOWN, before_calls, after_calls)
    real = abs(difference) > half and abs(difference) > LEAST_CHANGE * max(means[0], 1.0)
    change = (Change.SLOWER if difference > 0 else Change.FASTER) if real else Change.SAME
    return Difference(name, *means, difference, difference - half, difference + half, change, before_calls, after_calls)


def drawn_in(values: np.ndarray) -> np.ndarray:
    """The values, with those far outside the middle half moved to its edge, three times its width away.

    >>> bool(drawn_in(np.array([10., 11., 12., 11., 10., 500.])).max() < 20)
    True
    """
    if len(values) < 5:
        return values
    low, high = np.percentile(values, [25, 75])
    reach = 3 * (high - low)
    return np.clip(values, low - reach, high + reach)


def half_interval(one: np.ndarray, other: np.ndarray) -> float | None:
    """Half of the 95 % interval of a difference of means; None with fewer than three values on a side."""
    if len(one) < FEWEST_STEPS or len(other) < FEWEST_STEPS:
        return None
    parts = [float(values.var(ddof=1)) / len(values) for values in (one, other)]
    spread = sum(parts)
    if spread == 0:
        return 0.0
    freedom = spread**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (one, other)))
    return t_quantile(freedom) * math.sqrt(spread)


# The 97.5 % quantiles of Student's distribution; between them, linear in 1 / freedom.
_FREEDOMS = np.array([1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 120, 1e9])
_QUANTILES = np.array([12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.306, 2.228, 2.131, 2.086, 2.042, 2.000, 1.980,
                       1.960])


def t_quantile(freedom: float) -> float:
    """The number of standard errors that a 95 % interval reaches to each side.

    >>> round(t_quantile(7), 2), round(t_quantile(1000), 2)
    (2.37, 1.96)
    """
    return float(np.interp(1 / max(freedom, 1.0), 1 / _FREEDOMS[::-1], _QUANTILES[::-1]))
