"""`Timer`: how long a statement takes."""

from __future__ import annotations

import enum
import statistics
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

from . import common
from .valgrind_wrapper.timer_interface import CopyIfCallgrind

__all__ = ["Language", "Timer", "timer"]

_LONGEST_BLOCK = 2_147_483_647  # executions in a run

timer = timeit.default_timer  # nothing here runs behind the host's back, so there is nothing to wait for


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


def _left_aligned(code: str) -> str:
    """Code as it is often given, indented and with empty lines around it, as Python takes it."""
    return textwrap.dedent(code).removeprefix("\n").rstrip()


class Timer:
    """Times a statement.

    >>> Timer("x + 1", globals={"x": 1}).timeit(10).number_per_run
    10
    """

    _timer_cls: Any = timeit.Timer

    def __init__(self, stmt: str = "pass", setup: str = "pass", global_setup: str = "",
                 timer: Callable[[], float] = timer, globals: dict[str, Any] | None = None, label: str | None = None,
                 sub_label: str | None = None, description: str | None = None, env: str | None = None,
                 num_threads: int = 1, language: Language | str = Language.PYTHON) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: only Python statements can be timed, there is no C++ compiler here")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be "
                             "moved to `setup`.")
        self._globals = CopyIfCallgrind.unwrap_all(dict(globals or {}))
        if "torch" not in self._globals:
            self._globals["torch"] = __import__(__name__.partition(".")[0])  # a convenience of PyTorch's
        self._language = Language.PYTHON
        stmt, setup = _left_aligned(stmt), _left_aligned(setup)
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = common.TaskSpec(
            stmt=stmt, setup=setup, global_setup=global_setup, label=label, sub_label=sub_label,
            description=description, env=env, num_threads=num_threads)

    def _timeit(self, number: int) -> float:
        """Seconds for `number` executions. Clocks are coarse, so it is never nothing."""
        return float(max(self._timer.timeit(number), 1e-9))

    def _measured(self, number: int, times: list[float]) -> common.Measurement:
        return common.Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def timeit(self, number: int = 1000000) -> common.Measurement:
        """One run of `number` executions, after a short one to warm up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(number=max(int(number // 100), 2))
            return self._measured(number, [self._timeit(number=number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Python's `timeit` has it; here `blocked_autorange` does the same."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], NoReturn] | None = None) -> NoReturn:
        """Python's `timeit` has it; here `blocked_autorange` does the same."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _runs(self, number: int, enough: Callable[[list[float]], bool], min_run_time: float,
              max_run_time: float | None = None, callback: Callable[[int, float], Any] | None = None) -> list[float]:
        """The times of runs, until they are long together and enough for the caller, or until they are too long."""
        passed, times = 0.0, list[float]()
        stopping = False
        with common.set_torch_threads(self._task_spec.num_threads):
            while passed < min_run_time or not stopping:
                taken = self._timeit(number)
                times.append(taken)
                passed += taken
                if callback is not None:
                    callback(number, taken)
                stopping = enough(times)
                if max_run_time is not None and passed > max_run_time:
                    break
        return times

    def _estimate_block_size(self, min_run_time: float) -> int:
        """Executions per run for which the clock does not matter."""
        with common.set_torch_threads(self._task_spec.num_threads):
            overhead = statistics.median(self._timeit(0) for _ in range(5))
            number = 1
            while True:
                taken = self._timeit(number)
                if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                    return number
                if taken > min_run_time or number * 10 > _LONGEST_BLOCK:
                    return number
                number *= 10

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> common.Measurement:
        """Many runs, each long enough for the clock not to matter, until `min_run_time` seconds have passed."""
        number = self._estimate_block_size(min_run_time)
        return self._measured(number, self._runs(number, lambda times: True, min_run_time, callback=callback))

    def adaptive_autorange(self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
                           callback: Callable[[int, float], Any] | None = None) -> common.Measurement:
        """Runs until the times are close enough together, for at most `max_run_time` seconds."""
        number = self._estimate_block_size(min_run_time=0.05)

        def enough(times: list[float]) -> bool:
            return len(times) > 3 and self._measured(number, times).meets_confidence(threshold=threshold)

        return self._measured(number, self._runs(number, enough, min_run_time, max_run_time, callback))

    def collect_callgrind(self, number: int = 100, *, repeats: int | None = None, collect_baseline: bool = True,
                          retain_out_file: bool = False) -> NoReturn:
        """PyTorch runs the statement in Valgrind."""
        raise NotImplementedError("Timer.collect_callgrind counts the instructions of PyTorch's own library in "
                                  "Valgrind, which has no counterpart here")
