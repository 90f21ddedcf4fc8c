"""`Timer` and what it measures; a small part of PyTorch's, which also compares and counts instructions."""

from __future__ import annotations

import itertools
import statistics
import timeit as python_timeit
from typing import Any

UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


class Measurement:
    """Times of several runs, each of `number_per_run` executions."""

    def __init__(self, number_per_run: int, raw_times: list[float], label: str | None = None,
                 stmt: str = "pass") -> None:
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.label = label
        self.stmt = stmt

    @property
    def times(self) -> list[float]:
        """Seconds per execution, one figure per run."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def median(self) -> float:
        """The median, in seconds."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean, in seconds."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The range of the middle half of the runs, in seconds."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    def __repr__(self) -> str:
        scale, unit = next((u for u in reversed(UNITS) if self.median >= u[0]), UNITS[0])
        runs = len(self.raw_times)
        return (f"<{type(self).__module__}.{type(self).__name__}>\n{self.label or self.stmt}\n"
                f"  {'Median: ' if runs > 1 else ''}{self.median / scale:.2f} {unit}\n"
                f"  {runs} measurement{'s' if runs > 1 else ''}, {self.number_per_run} runs per measurement")


class Timer:
    """Times a statement.

    >>> Timer("x + 1", globals={"x": 1}).timeit(10).number_per_run
    10
    """

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Any = None,
                 globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
                 description: str | None = None, env: str | None = None, num_threads: int = 1,
                 language: str = "python") -> None:
        if language not in ("python", "py") or global_setup:
            raise NotImplementedError("Timer: only Python statements can be timed, there is no C++ compiler here")
        if num_threads != 1:
            raise NotImplementedError("Timer: the number of threads is NumPy's, it cannot be set to "
                                      f"{num_threads} for a measurement")
        self.stmt = stmt
        self.label = label
        self._timer = python_timeit.Timer(stmt, setup, timer or python_timeit.default_timer, globals=globals)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One run of `number` executions, after a short one to warm up."""
        self._timer.timeit(max(number // 100, 2))
        return Measurement(number, [self._timer.timeit(number)], self.label, self.stmt)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Many runs, long enough for the clock not to matter, until `min_run_time` seconds have passed."""
        number = self._block_size(min_run_time)
        times: list[float] = []
        passed = 0.0
        while not times or passed < min_run_time:
            times.append(self._timer.timeit(number))
            passed += times[-1]
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self.label, self.stmt)

    def _block_size(self, min_run_time: float) -> int:
        """Executions per run that make one run at least a thousandth of the whole."""
        for number in itertools.accumulate(itertools.repeat(10), lambda total, factor: total * factor, initial=1):
            taken = self._timer.timeit(number)
            if taken >= min_run_time / 1000 or number >= 10**9:
                return number
        raise AssertionError("unreachable: the sequence of block sizes does not end")
