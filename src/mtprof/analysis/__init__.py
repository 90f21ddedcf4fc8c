"""Answers from a trace: plain data classes, computed on columns.

>>> from mtprof.analysis import Analysis, compare  # doctest: +SKIP
>>> analysis = Analysis(mtprof.load("run.mtp"))  # doctest: +SKIP
>>> analysis.headline, analysis.breakdown.typical, analysis.operators(by=["shape"])[0]  # doctest: +SKIP
>>> compare(Analysis(before), Analysis(after)).summary  # doctest: +SKIP

`Analysis` has `steps`, `breakdown`, `operators(by)`, `modules`, `memory_peaks`, `advice` and `headline`.
`mtprof.analysis.device` has the work of devices. Everything is computed on first use, so a view pays only for what it
shows. All times are integers in nanoseconds by the trace's host clock, unless a name ends in `_us`.
"""

from __future__ import annotations

from .advice import Advice, Check, Figure, Finding, Verdict
from .analysis import Analysis
from .breakdown import StepBreakdown
from .compare import Change, Comparison, Difference, compare
from .memory_peak import Block, Holder, MemoryPeak
from .operators import GROUPINGS, OperatorRow
from .places import Place
from .steps import Steps, StepSource

__all__ = ["GROUPINGS", "Advice", "Analysis", "Block", "Change", "Check", "Comparison", "Difference", "Figure",
           "Finding",
           "Holder", "MemoryPeak", "OperatorRow", "Place", "StepBreakdown", "StepSource", "Steps", "Verdict", "compare"]
