"""Where the time of steps goes, and what a typical step looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..views.step_summary import PARTS, StepRow, step_summary
from .figures import percent_text, time_text
from .steps import StepSource

if TYPE_CHECKING:
    from .analysis import Analysis

PART_WORDS = {"data": "waits for data", "forward": "is forward", "backward": "is backward",
              "optimizer": "is the optimizer", "other": "is neither data, model nor optimizer"}
_ENOUGH_STEPS = 5
_MUCH = 0.2  # how far the average step may be from the median one, in length or in a part's share


@dataclass(frozen=True)
class StepBreakdown:
    """A row per step, the average one, and the typical one: of median length. Both leave out the warm-up."""

    rows: list[StepRow]
    source: StepSource
    warmup: int  # number of steps at the start that took much longer than later ones

    @property
    def typical(self) -> StepRow | None:
        """The steady row of median length; of an even number the shorter of two. None without a step."""
        steady = self.steady
        return sorted(steady, key=lambda row: row.wall_us)[(len(steady) - 1) // 2] if steady else None

    @property
    def apart(self) -> StepRow | None:
        """A single steady step that took longer than all others together: it would decide the average alone."""
        steady = self.steady
        if len(steady) < _ENOUGH_STEPS:
            return None
        longest = max(steady, key=lambda row: row.wall_us)
        return longest if 2 * longest.wall_us > sum(row.wall_us for row in steady) else None

    @property
    def average(self) -> StepRow | None:
        """The average of the steady rows except `apart`, as a row whose step is -1. None without a step."""
        apart = self.apart
        rows = [row for row in self.steady if row is not apart]
        if not rows:
            return None
        times = {f"{part}_us": sum(row.part_us(part) for row in rows) / len(rows) for part in ("wall", *PARTS)}
        return StepRow(step=-1, **times, ops=round(sum(row.ops for row in rows) / len(rows)))

    @property
    def differ(self) -> str:
        """A sentence about the typical step, if the average one is far from it, because steps differ much."""
        typical, average = self.typical, self.average
        if typical is None or average is None or not typical.wall_us:
            return ""
        there, here = typical.fractions, average.fractions
        if abs(average.wall_us - typical.wall_us) <= _MUCH * typical.wall_us and all(
                abs(there[part] - here[part]) <= _MUCH for part in PARTS):
            return ""
        part = max(there, key=lambda part: there[part])
        walls = [row.wall_us * 1000 for row in self.steady]
        return (f"Steps differ: they take from {time_text(min(walls))} to {time_text(max(walls))}, and "
                f"{percent_text(there[part])} of the median one {PART_WORDS[part]} ("
                f"{time_text(1000 * typical.part_us(part))} of {time_text(1000 * typical.wall_us)}).")

    @property
    def steady(self) -> list[StepRow]:
        """The rows after the warm-up, without a last one in which no op ran, as when a loader was found empty."""
        last = len(self.rows)
        while last > self.warmup + 1 and not self.rows[last - 1].ops:
            last -= 1
        return self.rows[self.warmup: last]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {"source": self.source.value, "warmup": self.warmup, "typical": self.typical and self.typical.to_dict(),
                "average": self.average and self.average.to_dict(), "apart": self.apart and self.apart.step,
                "differ": self.differ, "steps": [row.to_dict() for row in self.rows]}


def step_breakdown(analysis: Analysis) -> StepBreakdown:
    """The breakdown of the steps that `find_steps` found."""
    steps = analysis.steps
    rows = list(step_summary(analysis.trace, steps.windows))
    wall = np.array([row.wall_us for row in rows])
    warm = warmup(wall)
    return StepBreakdown(rows, steps.source, warm)


def warmup(wall: np.ndarray, ratio: float = 2.0) -> int:
    """The number of steps at the start that took at least `ratio` times the median of the later ones; at most a third.

    >>> warmup(np.array([9., 4., 1., 1., 1., 1.])), warmup(np.array([1., 1., 5., 1.])), warmup(np.array([5., 1.]))
    (2, 0, 0)
    """
    if len(wall) < 4:
        return 0
    usual = float(np.median(wall[len(wall) // 3:]))
    slow = 0
    while slow < len(wall) // 3 and wall[slow] >= ratio * usual and usual > 0:
        slow += 1
    return slow
