"""All data of the report page, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ..analysis import Analysis, OperatorRow, compare
from ..analysis.device.temporal import temporal_breakdown
from ..analysis.health import examine
from ..errors import MissingTable
from ..export.memory_page import page_data as memory_chart
from ..json_text import text
from ..launch.settings import PROGRAM
from ..ranks import Ranks
from ..schema import FLAGS
from ..views.module_tree import OUTSIDE, ModuleNode
from ..views.step_summary import PARTS, StepRow
from .columns import packed
from .flame import flames_of
from .ranks import ranks_of
from .timeline import timeline_of

MOST_STEPS = 2000
MOST_ROWS = 5000
_MOST_MEMORY_EVENTS = 400_000  # more would take the page too long to add up


def content_of(analyses: Sequence[Analysis], most_events: int | None = None,
               ranks: Ranks | None = None) -> dict[str, Any]:
    """The content of the page; it is about the last analysis."""
    analysis = analyses[-1]
    return plain({
        "title": analysis.recording.source or "recording",
        "overview": overview(analysis),
        "operators": operators(analysis),
        "timeline": timeline_of(analysis, most_events),
        "flame": flames_of(analysis),
        "memory": memory(analysis),
        "modules": modules(analysis),
        "ranks": None if ranks is None else ranks_of(ranks),
        "compare": comparison(analyses) if len(analyses) == 2 else None,
        "run": run(analysis),
    })


def overview(analysis: Analysis) -> dict[str, Any]:
    """The first page: a sentence, a typical step, findings."""
    breakdown = analysis.breakdown
    advice = analysis.advice
    return {
        "headline": analysis.headline, "parts": list(PARTS), "source": breakdown.source.value,
        "warmup": breakdown.warmup, "differ": breakdown.differ,
        "average": None if breakdown.average is None else step(breakdown.average),
        "typical": None if breakdown.typical is None else step(breakdown.typical),
        "known": analysis.steps.known, "count": len(breakdown.rows),
        "steps": [step(row) for row in breakdown.rows[:MOST_STEPS]],
        "starts": analysis.steps.start_ns[:MOST_STEPS].tolist(), "begin": analysis.trace.start_ns,
        "findings": [finding.to_dict() for finding in advice.findings],
        "checks": [{"kind": check.kind, "verdict": check.verdict.value, "why": check.why} for check in advice.checks],
        "device_idle": device_idle(analysis),
    }


def device_idle(analysis: Analysis) -> list[dict[str, Any]]:
    """How long each device worked, while the recording ran."""
    return [asdict(row) for row in temporal_breakdown(analysis)]


def step(row: StepRow) -> dict[str, Any]:
    """A step in nanoseconds."""
    return {"step": row.step, "ops": row.ops, "wall": row.wall_us * 1000,
            **{part: row.part_us(part) * 1000 for part in PARTS}}


def operators(analysis: Analysis) -> dict[str, Any]:
    """Rows of ops in every grouping that the recording has evidence for."""
    metadata, trace = analysis.trace.metadata, analysis.trace
    groupings: dict[str, list[str]] = {"name": []}
    if metadata.get("record_shapes") or (trace.events["inputs"] >= 0).any():
        groupings["shape"] = ["shape"]
    if trace.has("stacks") and (trace.events["stack"] >= 0).any():
        groupings["place"] = ["place"]
    if (trace.events["module"] >= 0).any():
        groupings["module"] = ["module"]
    found = {}
    for name, by in groupings.items():
        rows = analysis.operators(by)
        found[name] = {"rows": [operator(row) for row in rows[:MOST_ROWS]], "left_out": max(len(rows) - MOST_ROWS, 0)}
    return {"groupings": found, "memory": trace.has("memory"), "flops": bool(metadata.get("with_flops")),
            "device": bool((trace.events["device"] > 0).any())}


def operator(row: OperatorRow) -> dict[str, Any]:
    """A row without its empty values."""
    values = {
        "name": row.name, "kind": row.kind, "device": row.device, "calls": row.calls, "self": row.self_ns,
        "total": row.total_ns, "share": row.self_share, "self_device": row.self_device_ns, "device_time": row.device_ns,
        "self_bytes": row.self_bytes, "bytes": row.bytes, "flops": row.flops, "shapes": row.shapes,
        "module": row.module, "place": str(row.place) if row.place else ""}
    return {key: value for key, value in values.items() if value}


def memory(analysis: Analysis) -> dict[str, Any]:
    """What held the peak; and memory over time by category, if enough was recorded."""
    trace = analysis.trace
    if not trace.has("memory"):
        return {"why": "Memory was not recorded. Record with profile_memory=True (mtprof run does).", "peaks": []}
    peaks = [peak.to_dict() for peak in analysis.memory_peaks]
    charts, why = {}, ""
    try:
        if len(trace.tables["memory"]["time_ns"]) > _MOST_MEMORY_EVENTS:
            why = "There are too many allocations to draw each one; the table of the peak is exact."
        else:
            profile = analysis.memory_profile
            charts = {peak["device"]: memory_chart(profile, peak["device"]) for peak in peaks}
    except MissingTable as error:
        why = f"Memory over time by category needs more recorded data: {error}"
    for chart in charts.values():
        chart["segments"] = {key: packed(np.array(column)) for key, column in chart["segments"].items()}
    return {"why": why, "peaks": peaks, "charts": charts}


def modules(analysis: Analysis) -> dict[str, Any]:
    """The tree of modules."""
    tree = analysis.modules
    if tree is None:
        return {"why": "Modules were not recorded. Record with with_modules=True (mtprof run does), or in PyTorch with "
                       "with_stack=True.", "rows": []}
    rows: list[dict[str, Any]] = []

    def add(node: ModuleNode, above: ModuleNode | None, depth: int) -> None:
        numbers = {key: value for key, value in vars(node).items() if key != "children"}
        rows.append({"depth": depth, "name": node.title(above) or OUTSIDE, **numbers})
        for child in node.children:
            add(child, node, depth + 1)

    for root in tree.roots:
        add(root, None, 0)
    add(tree.outside, None, 0)
    return {"why": "", "rows": rows}


def comparison(analyses: Sequence[Analysis]) -> dict[str, Any]:
    """Differences to the first recording."""
    found = compare(*analyses).to_dict()
    found["names"] = [analysis.recording.source or word for analysis, word in zip(analyses, ("before", "after"))]
    return found


def run(analysis: Analysis) -> dict[str, Any]:
    """How the recording was made, and what it cost."""
    trace = analysis.trace
    metadata = {key: value for key, value in trace.metadata.items() if key not in FLAGS}
    program = metadata.pop(PROGRAM, None)
    seconds = (trace.epoch_ns + trace.start_ns) / 1e9
    began = datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds") if seconds > 1e8 else "unknown"
    facts: dict[str, Any] = {
        "file": analysis.recording.source,
        "began": began,
        "lasted_ns": trace.end_ns - trace.start_ns, "events": len(trace), "dropped": trace.dropped,
        "threads": len(trace.threads), "processes": len({thread.pid for thread in trace.threads}),
        "steps": f"{len(analysis.breakdown.rows)}, from {analysis.breakdown.source.value}",
        "overhead_ns": int(float(metadata.get("profiler_overhead_us") or 0) * 1000) or None,
    }
    clocks = [asdict(row) for row in analysis.recording.clocks()] if trace.has("clocks") else []
    return {"facts": facts, "flags": _flags(trace.metadata), "clocks": clocks,
            "program": {str(key): str(value) for key, value in program.items()} if isinstance(program, dict) else {},
            "metadata": {key: value if isinstance(value, (int, float, bool, str)) else text(value)[:2000]
                         for key, value in metadata.items()},
            "ailments": [asdict(one) for one in examine(trace)]}


def _flags(metadata: Mapping[str, Any]) -> dict[str, bool | None]:
    """What was recorded; None if a trace does not say. PyTorch names only the options that were on, if any was."""
    stated = any(flag in metadata for flag in FLAGS)
    return {flag: bool(metadata.get(flag)) if stated else None for flag in FLAGS}


def plain(value: Any) -> Any:
    """Values that JSON can hold; a float that is not a number becomes None."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "item"):
        return value.item()
    return value
