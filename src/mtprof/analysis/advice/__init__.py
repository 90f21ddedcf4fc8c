"""Advice with evidence: one file per kind of finding, each a function from an analysis to its result.

A check finds something, or finds that its figure is in order, or says that the recording has no evidence. Thresholds
are at the top of each file, with the reason for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import (
    changing_shapes,
    collector,
    device_idle,
    first_steps,
    input_bound,
    memory_churn,
    memory_growth,
    memory_peak,
    optimizer,
    python_bound,
    synchronisation,
    tiny_ops,
    waiting,
)
from .finding import Advice, Check, Clean, Figure, Finding, Result, Unknown, Verdict

if TYPE_CHECKING:
    from ..analysis import Analysis

__all__ = ["KINDS", "Advice", "Check", "Figure", "Finding", "Verdict", "advise"]

KINDS: dict[str, Callable[[Analysis], Result]] = {
    "input-bound": input_bound.look,
    "device-idle": device_idle.look,
    "synchronisation": synchronisation.look,
    "tiny-ops": tiny_ops.look,
    "python-bound": python_bound.look,
    "unfused-optimizer": optimizer.look,
    "waiting": waiting.look,
    "garbage-collector": collector.look,
    "slow-first-steps": first_steps.look,
    "changing-shapes": changing_shapes.look,
    "memory-peak": memory_peak.look,
    "memory-growth": memory_growth.look,
    "memory-churn": memory_churn.look,
}


def advise(analysis: Analysis) -> Advice:
    """Run all checks in `KINDS`."""
    findings, checks = [], []
    for kind, look in KINDS.items():
        result = look(analysis) if len(analysis.trace) else Unknown("nothing was recorded")
        if isinstance(result, Finding):
            findings.append(result)
            checks.append(Check(kind, Verdict.FOUND, result.title))
        else:
            verdict = Verdict.CLEAN if isinstance(result, Clean) else Verdict.UNKNOWN
            checks.append(Check(kind, verdict, result.why))
    findings.sort(key=lambda finding: -(finding.saves_share or 0.0))
    return Advice(findings, checks)
