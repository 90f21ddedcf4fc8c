"""Counts of instructions by function. They are kept, compared and shown here, not collected."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ....._tensor_str import PRINT_OPTS
from .. import common

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]

_PLACE = "valgrind_wrapper.timer_interface"
_ROWS, _ROWS_AT_EACH_END = 18, 9
# How often the interpreter looks into a dictionary again depends on how its keys happen to lie.
_NOISE = "dictobject.c:lookdict_unicode"
# What depends on where PyTorch was built, and on how its library was linked.
_BUILD_PLACES = ((re.compile(r"^.+build/\.\./"), "build/../"), (re.compile(r"^.+/(build/aten/)"), r"\1"),
                 (re.compile(r"^.+(Python|Objects)/"), r"\1/"), (re.compile(r"\s\[.+\]$"), ""))


class FunctionCount(NamedTuple):
    """How many instructions ran in a function."""

    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    function: str


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """The counts of many functions, the highest first. They can be added, subtracted and filtered."""

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[FunctionCount]:
        yield from self._data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> FunctionCounts:
        found = self._data[item]
        return dataclasses.replace(self, _data=found if isinstance(item, slice) else (found,))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        width = max((len(str(count)) + (count < 0) for count, _ in self), default=0)
        room = max((self._linewidth or PRINT_OPTS.linewidth) - width - 4, 40)
        lines = []
        for count, function in self:
            if len(function) > room:
                left = (room - 5) // 2
                function = f"{function[:left]} ... {function[left + 5 - room:]}"
            lines.append(f"  {count:>{width}}  {function}")
        if self.truncate_rows and len(lines) > _ROWS:
            lines = [*lines[:_ROWS_AT_EACH_END], "...".rjust(width + 2), *lines[-_ROWS_AT_EACH_END:]]
        total = ["", f"Total: {self.sum()}"] if not self.inclusive else []
        return "\n".join([common.name_of(self, _PLACE), *lines, *total])

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, lambda count: count)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, lambda count: -count)

    def __mul__(self, other: float) -> FunctionCounts:
        return self._from_dict({function: int(count * other) for count, function in self}, self.inclusive)

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """Functions renamed; counts of those that then have one name are added."""
        counts: defaultdict[str, int] = defaultdict(int)
        for count, function in self:
            counts[map_fn(function)] += count
        return self._from_dict(counts, self.inclusive)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """Only the functions for whose names this holds."""
        return dataclasses.replace(self, _data=tuple(one for one in self if filter_fn(one.function)))

    def sum(self) -> int:
        """The instructions of all functions."""
        return sum(count for count, _ in self)

    def denoise(self) -> FunctionCounts:
        """Without functions whose counts differ from run to run for no reason."""
        return self.filter(lambda function: _NOISE not in function)

    def _merge(self, second: FunctionCounts, signed: Callable[[int], int]) -> FunctionCounts:
        if self.inclusive != second.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts.")
        counts: defaultdict[str, int] = defaultdict(int)
        for count, function in self:
            counts[function] += count
        for count, function in second:
            counts[function] += signed(count)
        return self._from_dict(counts, self.inclusive)

    @staticmethod
    def _from_dict(counts: dict[str, int], inclusive: bool) -> FunctionCounts:
        found = sorted((FunctionCount(count, function) for function, count in counts.items() if count), reverse=True)
        return FunctionCounts(tuple(found), inclusive)


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """What Callgrind counted for a statement, and for doing nothing."""

    task_spec: common.TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: str | None

    def __repr__(self) -> str:
        base, threads = self.baseline_exclusive_stats, self.task_spec.num_threads
        return "\n".join([
            common.name_of(self, _PLACE), self.task_spec.summarize(),
            f"{'All':>30}{'Noisy symbols removed':>31}",
            f"    Instructions: {self.counts(denoise=False):>12}{self.counts(denoise=True):>27}",
            f"    Baseline:     {base.sum():>12}{base.denoise().sum():>27}",
            f"{self.number_per_run} runs per measurement, {threads} thread{'s' if threads > 1 else ''}",
            *([] if self.built_with_debug_symbols else [
                "Warning: PyTorch was not built with debug symbols.",
                "         Source information may be limited. Rebuild with",
                "         REL_WITH_DEB_INFO=1 for more detailed results."])])

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """The counts by function; inclusive ones count what a function calls as well."""
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise: bool = False) -> int:
        """All instructions."""
        return (self.stmt_exclusive_stats.denoise() if denoise else self.stmt_exclusive_stats).sum()

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """What this one has more than another."""
        return self.stats(inclusive=inclusive) - other.stats(inclusive=inclusive)

    def as_standardized(self) -> CallgrindStats:
        """With names that do not depend on where PyTorch lies, so that two builds can be compared."""
        def plain(function: str) -> str:
            for pattern, left in _BUILD_PLACES:
                function = pattern.sub(left, function)
            return function

        return dataclasses.replace(self, **{name: getattr(self, name).transform(plain) for name in (
            "baseline_inclusive_stats", "baseline_exclusive_stats", "stmt_inclusive_stats", "stmt_exclusive_stats")})


class Serialization(enum.Enum):
    """How a value gets into another process."""

    PICKLE = 0
    TORCH = 1
    TORCH_JIT = 2


class CopyIfCallgrind:
    """Marks a value of `globals` as one that `collect_callgrind` may copy."""

    def __init__(self, value: Any, *, setup: str | None = None) -> None:
        self._value = value
        self._setup = setup
        self._serialization = Serialization.PICKLE

    @property
    def value(self) -> Any:
        """The value."""
        return self._value

    @property
    def setup(self) -> str | None:
        """Code that runs before the value is read."""
        return self._setup

    @property
    def serialization(self) -> Serialization:
        """How the value is written."""
        return self._serialization

    @staticmethod
    def unwrap_all(globals: dict[str, Any]) -> dict[str, Any]:
        """Values without their marks."""
        return {name: value.value if isinstance(value, CopyIfCallgrind) else value
                for name, value in globals.items()}
