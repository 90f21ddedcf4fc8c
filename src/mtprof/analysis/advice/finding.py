"""What advice is made of: findings with figures, and checks without a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Union

from ..figures import share_text, size_text, three_digits, time_text
from ..places import Place

_WRITERS = {"ns": time_text, "bytes": size_text, "share": share_text}


@dataclass(frozen=True)
class Figure:
    """A number that supports a finding; `unit` is "ns", "bytes", "share" (0 to 1), "count" or "text"."""

    name: str
    value: float | str
    unit: str

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return self.value
        if self.unit in _WRITERS:
            return _WRITERS[self.unit](self.value)
        whole = float(self.value).is_integer() or self.value >= 1000
        return f"{round(self.value):,}" if whole else three_digits(self.value)


@dataclass(frozen=True)
class Finding:
    """A finding: something worth a change, with its evidence."""

    kind: str  # a word per kind of finding, as in `advice.KINDS`
    title: str  # one sentence with the main figure
    figures: Sequence[Figure]
    change: str  # what to change
    place: Place | None = None  # where in the user's code, if stacks were recorded
    saves_ns: int | None = None  # at most, over the recorded steps; None if unknown
    saves_share: float | None = None  # the same as a share of the time of these steps
    saves_bytes: int | None = None  # at most, of the memory peak
    page: str = "overview"  # of the report, where the evidence is: operators, timeline, memory, modules
    query: str = ""  # what to search for there

    @property
    def saving(self) -> str:
        """What the change would save at most, in words."""
        if self.saves_ns is not None and self.saves_share is not None:
            return f"at most {time_text(self.saves_ns)}, {share_text(self.saves_share)} of the steps"
        if self.saves_bytes is not None:
            return f"at most {size_text(self.saves_bytes)} of the peak"
        return "not known from this recording"

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {"kind": self.kind, "title": self.title, "change": self.change,
                "figures": [{"name": f.name, "value": f.value, "unit": f.unit, "text": str(f)} for f in self.figures],
                "place": vars(self.place) if self.place else None, "saves_ns": self.saves_ns,
                "saves_share": self.saves_share, "saves_bytes": self.saves_bytes, "saving": self.saving,
                "page": self.page, "query": self.query}


class Verdict(Enum):
    """How a check ended."""

    FOUND = "found"
    CLEAN = "clean"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True)
class Check:
    """The result of one kind of check; `why` has the figure that decided it, or what is missing."""

    kind: str
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class Clean:
    """A check that found nothing wrong, and the figure that decided it."""

    why: str


@dataclass(frozen=True)
class Unknown:
    """A check for which the recording has no evidence."""

    why: str


Result = Union[Finding, Clean, Unknown]  # noqa: UP007  (a type alias, which Python 3.10 evaluates)


@dataclass(frozen=True)
class Advice:
    """The findings, largest saving first, and how every check ended."""

    findings: list[Finding]
    checks: list[Check] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """One sentence."""
        if self.findings:
            more = f" (and {len(self.findings) - 1} more)" if len(self.findings) > 1 else ""
            return self.findings[0].title + more
        looked = sum(check.verdict is not Verdict.UNKNOWN for check in self.checks)
        if not looked:
            return "The recording has no evidence for any check."
        return f"Nothing to report: {looked} of {len(self.checks)} checks had evidence, and found nothing wrong."

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {"summary": self.summary, "findings": [finding.to_dict() for finding in self.findings],
                "checks": [{"kind": c.kind, "verdict": c.verdict.value, "why": c.why} for c in self.checks]}

    def markdown(self) -> str:
        """As a page of Markdown. Text from the trace is in code spans."""
        lines = ["# Advice", "", self.summary, ""]
        for number, finding in enumerate(self.findings, start=1):
            lines += [f"## {number}. {finding.title}", ""]
            if finding.place:
                lines.append(f"- Where: {code_span(str(finding.place))}")
            lines += [f"- {figure.name}: {code_span(str(figure)) if figure.unit == 'text' else figure}"
                      for figure in finding.figures]
            lines += [f"- Change: {finding.change}", f"- Saves: {finding.saving}", ""]
        lines += ["## Checks", "", "| check | result | because |", "|---|---|---|"]
        lines += [f"| {check.kind} | {check.verdict.value} | {_cell(check.why)} |" for check in self.checks]
        return "\n".join(lines) + "\n"


def code_span(text: str) -> str:
    """Text unchanged, in Markdown: between as many backticks as it needs."""
    fence = "`"
    while fence in text:
        fence += "`"
    around = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{around}{text}{around}{fence}".replace("\n", " ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
