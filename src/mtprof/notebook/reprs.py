"""Results as HTML, for notebooks. All text from a trace is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ..analysis import Analysis
from ..analysis.figures import counted, share_text, size_text, time_text
from ..recording import Recording
from ..views.function_event_avg import FunctionEventAvg
from ..views.step_summary import PARTS

if TYPE_CHECKING:
    from ..recording import Recording
    from ..trace import Trace
    from ..views.event_list import EventList
    from ..views.module_tree import ModuleNode, ModuleTree
    from ..views.step_summary import StepSummary

ROWS = 30
# Colours that suit the notebook's own theme, light or dark.
_CELL = "padding:1px 8px;text-align:{side};white-space:nowrap"
_BAR = ("background:linear-gradient(90deg,rgba(70,130,200,.35) {share:.1f}%,transparent {share:.1f}%)")


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, left: Sequence[int] = (0,), bars: int | None = None,
          note: str = "") -> str:
    """An HTML table; the column `bars` has shares from 0 to 1, shown as percentages on bars."""
    def cell(tag: str, at: int, value: Any) -> str:
        style = _CELL.format(side="left" if at in left else "right")
        if at == bars and tag == "td":
            style += ";" + _BAR.format(share=100 * min(max(value, 0.0), 1.0))
            value = share_text(value)
        return f'<{tag} style="{style}">{escape(str(value))}</{tag}>'

    lines = ["<table><thead><tr>", *(cell("th", at, head) for at, head in enumerate(heads)), "</tr></thead><tbody>"]
    for row in rows:
        lines.append("<tr>" + "".join(cell("td", at, value) for at, value in enumerate(row)) + "</tr>")
    lines.append("</tbody></table>")
    return "".join(lines) + (f"<p><small>{escape(note)}</small></p>" if note else "")


def paragraph(text: str, tag: str = "p") -> str:
    """A line of text."""
    return f"<{tag}>{escape(text)}</{tag}>"


def event_list(events: EventList) -> str:
    """Averages by self time, or the first events."""
    if events and isinstance(events[0], FunctionEventAvg):
        rows = sorted(events, key=lambda row: -(row.self_cpu_time_total + row.self_device_time_total))
        whole = sum(row.self_cpu_time_total for row in events) or 1.0
        on_device = any(row.device_time_total for row in events)
        heads = ["name", "calls", "self CPU", "share", "CPU total", *(["device total"] if on_device else [])]
        cells = [[row.key, f"{row.count:,}", time_text(1000 * row.self_cpu_time_total), row.self_cpu_time_total / whole,
                  time_text(1000 * row.cpu_time_total),
                  *([time_text(1000 * row.device_time_total)] if on_device else [])] for row in rows[:ROWS]]
        return table(heads, cells, bars=3, note=_more(len(events), "rows"))
    cells = [[event.name, time_text(1000 * event.time_range.start), time_text(1000 * event.time_range.elapsed_us()),
              event.thread] for event in events[:ROWS]]
    return table(["name", "start", "duration", "thread"], cells, note=_more(len(events), "events"))


def _more(count: int, what: str) -> str:
    return f"{ROWS} of {count:,} {what}" if count > ROWS else f"{count:,} {what}"


def step_summary(summary: StepSummary) -> str:
    """A row per step, with the parts as shares of a bar."""
    cells = [[label, time_text(1000 * row.wall_us), *(f"{time_text(1000 * row.part_us(part))} "
              f"({share_text(row.fractions[part])})" for part in PARTS), f"{row.ops:,}"]
             for label, row in [*((str(row.step), row) for row in summary.rows[:ROWS]), ("total", summary.totals)]]
    return table(["step", "wall", *PARTS, "ops"], cells, note=_more(len(summary), "steps"))


def module_tree(tree: ModuleTree) -> str:
    """The tree, indented."""
    def rows(node: ModuleNode, above: ModuleNode | None, depth: int) -> list[list[Any]]:
        own = [["\N{NO-BREAK SPACE}" * 4 * depth + node.title(above), node.path, f"{node.calls:,}",
                time_text(node.forward_ns), node.forward_ns / whole, time_text(node.backward_ns),
                size_text(node.allocated_bytes), f"{node.parameters:,}"]]
        return own + [row for child in node.children for row in rows(child, node, depth + 1)]

    whole = sum(root.forward_ns for root in tree.roots) or 1
    cells = [row for root in tree.roots for row in rows(root, None, 0)]
    return table(["module", "path", "calls", "forward", "share", "backward", "allocated", "parameters"], cells[:200],
                 left=(0, 1), bars=4, note=f"200 of {len(cells)} modules" if len(cells) > 200 else "")


def recording(found: Recording) -> str:
    """The headline, a typical step, the busiest ops and the first findings."""
    analysis = Analysis(found)
    trace = found.trace
    parts = [paragraph(f"{found.source or 'Recording'}: {counted(len(trace), 'event')}, "
                       f"{counted(len(trace.threads), 'thread')}, "
                       f"{time_text(trace.end_ns - trace.start_ns)}")]
    if not len(trace):
        return parts[0]
    parts.append(paragraph(analysis.headline, "h4"))
    breakdown = analysis.breakdown
    if breakdown.average is not None:
        parts.append(table(["part of an average step", "time", "share"],
                           [[part, time_text(1000 * breakdown.average.part_us(part)), breakdown.average.fractions[part]]
                            for part in PARTS], bars=2, note=breakdown.differ))
    rows = analysis.operators()
    parts.append(table(["op", "calls", "self", "share", "total"],
                       [[row.name, f"{row.calls:,}", time_text(row.self_ns), row.self_share, time_text(row.total_ns)]
                        for row in rows[:10]], bars=3, note=f"10 of {len(rows)} ops" if len(rows) > 10 else ""))
    if analysis.advice.findings:
        items = ""
        for finding in analysis.advice.findings:
            place = f" ({finding.place})" if finding.place else ""
            items += f"<li>{escape(finding.title + place)} <i>{escape(finding.change)}</i></li>"
        parts.append(f"<ol>{items}</ol>")
    else:
        parts.append(paragraph(analysis.advice.summary))
    return "".join(parts)


def trace(found: Trace) -> str:
    """As a recording."""
    return recording(Recording(found))
