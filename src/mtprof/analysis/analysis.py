"""`Analysis`: the questions that people ask about a recording, each answered once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..recording import Recording
from ..trace import Trace
from ..views.memory_profile import MemoryProfile
from ..views.module_tree import ModuleTree, module_tree
from ..views.trace_view import TraceView
from .advice import Advice, advise
from .breakdown import PART_WORDS, StepBreakdown, step_breakdown
from .device.launches import launch_of
from .device.work import DeviceWork, device_work
from .figures import percent_text, time_text
from .memory_peak import MemoryPeak, memory_peaks
from .operators import OperatorRow, operators
from .places import Places
from .steps import Steps, find_steps


class Analysis:
    """The answers from a recording, computed on first use and then kept.

    >>> import mtprof
    >>> from mtprof.analysis import Analysis
    >>> analysis = Analysis(mtprof.load("trace.json"))  # doctest: +SKIP
    >>> analysis.headline, analysis.advice.findings  # doctest: +SKIP
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._operators: dict[tuple[str, ...], list[OperatorRow]] = {}

    @property
    def trace(self) -> Trace:
        """The columns."""
        return self.recording.trace

    @cached_property
    def view(self) -> TraceView:
        """The columns as PyTorch's event list shows them."""
        return TraceView(self.trace, use_device=self.recording.use_device, profile_memory=self.recording.profile_memory)

    @cached_property
    def places(self) -> Places:
        """The places in the user's code that events came from."""
        return Places(self.trace)

    @cached_property
    def steps(self) -> Steps:
        """The steps, stated or found."""
        return find_steps(self.trace)

    @cached_property
    def breakdown(self) -> StepBreakdown:
        """The parts of each step's time."""
        return step_breakdown(self)

    def operators(self, by: Sequence[str] = ()) -> list[OperatorRow]:
        """Ops by self time; `by` are words of `operators.GROUPINGS`: shape, place, module, overload."""
        key = tuple(by)
        if key not in self._operators:
            self._operators[key] = operators(self, by)
        return self._operators[key]

    @cached_property
    def modules(self) -> ModuleTree | None:
        """Time, memory and work by module; None if modules were not recorded."""
        return module_tree(self.trace) if self.trace.has("modules") and self.trace.has("module_calls") else None

    @cached_property
    def memory_profile(self) -> MemoryProfile:
        """Memory over time with its categories; raises an error that says what was not recorded."""
        return self.recording.memory_profile()

    @cached_property
    def memory_peaks(self) -> list[MemoryPeak]:
        """The memory peak of each device and what held it; empty if memory was not recorded."""
        return memory_peaks(self)

    @cached_property
    def device_work(self) -> list[DeviceWork]:
        """Rows of the work of each device."""
        return device_work(self)

    @cached_property
    def launch(self) -> np.ndarray:
        """For each event the row of the host's call that launched it, or -1."""
        return launch_of(self)

    @cached_property
    def advice(self) -> Advice:
        """What to change, with evidence."""
        return advise(self)

    @property
    def headline(self) -> str:
        """One sentence that says where the time goes, on average over the steps after the warm-up.

        A single step that took longer than all others together is named instead of included.
        """
        breakdown = self.breakdown
        average, longest = breakdown.average, breakdown.apart
        if average is None or not len(self.trace):
            return "Nothing was recorded."
        if not average.wall_us:
            return "Nothing took any time."
        part = max(PART_WORDS, key=average.part_us)
        share = average.fractions[part]
        took = f"{_time(average.part_us(part))} of {_time(average.wall_us)}"
        if not self.steps.known:
            return f"{percent_text(share)} of the recording {PART_WORDS[part]} ({took})."
        apart = f", apart from step {longest.step}, which took {_time(longest.wall_us)}" if longest is not None else ""
        often = " on average" if len(breakdown.steady) > 1 else ""
        return f"{percent_text(share)} of a step {PART_WORDS[part]} ({took}{often}){apart}."


def _time(time_us: float) -> str:
    return time_text(time_us * 1000)
