"""What was measured, and how it is told: `TaskSpec`, `Measurement`, and rounding of times."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...._settings import get_num_threads, set_num_threads

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig",
           "unit_to_english"]

_SHAKY, _WORTHLESS = 0.1, 0.25  # interquartile ranges, relative to the median, that are warned of
_SHORTEST_INTERVAL = 25e-9  # seconds: no measurement is known better than this
_MOST_DIGITS = 4
_UNITS = {-3: ("ns", 1e-9), -2: ("us", 1e-6), -1: ("ms", 1e-3)}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


def name_of(value: Any, place: str) -> str:
    """The first line of a text about an object, with PyTorch's name of its class."""
    return f"<torch.utils.benchmark.utils.{place}.{type(value).__name__} object at {id(value):#x}>"


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is timed. Measurements with equal ones can be merged."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement if there is none."""
        if self.label is None and "\n" in self.stmt:
            below = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{below}\n{textwrap.indent(self.stmt, '  ')}"
        title = self.stmt if self.label is None else self.label
        return title + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """The setup, unless it does nothing."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup; an empty line follows what takes several."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The times of several runs, each of `number_per_run` executions.

    >>> measured = Measurement(10, [1.0, 2.0, 3.0], TaskSpec("f()", "pass"))
    >>> measured.median, measured.stmt
    (0.2, 'f()')
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        # Asked only for what is not found here. An object that is being unpickled has no task yet.
        task = self.__dict__.get("task_spec")
        if task is None or name not in TaskSpec.__dataclass_fields__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(task, name)

    @property
    def times(self) -> list[float]:
        """Seconds per execution, one figure per run."""
        return [time / self.number_per_run for time in self.raw_times]

    def _quantile(self, share: float) -> float:
        return float(np.quantile(np.asarray(self.times, np.float64), share))

    @property
    def median(self) -> float:
        """The median, in seconds."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean, in seconds."""
        return float(np.mean(np.asarray(self.times, np.float64)))

    @property
    def iqr(self) -> float:
        """The range of the middle half of the runs, in seconds."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something: those that the spread of the middle half leaves."""
        ordered = sorted(self.times)
        middle = ordered[len(ordered) // 4:math.ceil(3 * len(ordered) / 4)]
        # 90% of what is to be expected lies within 1.645 standard deviations of the mean.
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), _SHORTEST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_DIGITS)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so far that the text warns of it."""
        return bool(self._warning())

    def meets_confidence(self, threshold: float = _SHAKY) -> bool:
        """Whether the interquartile range is below this share of the median."""
        return self.iqr / self.median < threshold

    def _warning(self) -> str:
        if self.meets_confidence(_SHAKY):
            return ""
        why = ("This could indicate system fluctuation." if self.meets_confidence(_WORTHLESS)
               else "This suggests significant environmental influence.")
        return (f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n"
                f"           {why}\n")

    @property
    def title(self) -> str:
        """The task's title."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What the measurement's row in a table is called."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        runs, threads = len(self.raw_times), self.num_threads
        lines = [name_of(self, "common"), self.task_spec.summarize(),
                 f"  {'Median: ' if runs > 1 else ''}{self.median / scale:.2f} {unit}"]
        if runs >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(f"  {runs} measurement{'s' if runs > 1 else ''}, {self.number_per_run} runs "
                     f"{'per measurement' if runs > 1 else ''}, {threads} thread{'s' if threads > 1 else ''}")
        return "\n".join([*lines, self._warning()]).rstrip("\n")

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all its runs."""
        found: dict[TaskSpec, list[float]] = {}
        for one in measurements:
            found.setdefault(one.task_spec, []).extend(one.times)
        return [Measurement(1, times, task, None) for task, times in found.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time in seconds is told, and its length.

    >>> select_unit(2e-5)
    ('us', 1e-06)
    """
    return _UNITS.get(int(math.log10(t) // 3), ("s", 1))


def unit_to_english(u: str) -> str:
    """The name of a unit in full."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to `n` significant digits, as a `float32` has it."""
    if n != int(n):
        raise AssertionError("n must be an integer")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - int(n))
    return float(np.round(np.float32(x / scale)) * np.float32(scale))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order in which they come first."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Inside, ops use `n` threads."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)
