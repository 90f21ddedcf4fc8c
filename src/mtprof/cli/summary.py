"""Print where the time of a trace goes.

Prints the parts of an average step, the busiest ops, the memory peak and the first piece of advice."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .files import add_input, read
from .output import SETTINGS, line, print_json, table, working

if TYPE_CHECKING:
    from ..analysis import Analysis

EXAMPLES = """
mtprof summary run.mtp
mtprof summary --rows 20 --by shape trace.json.gz
mtprof summary --json run.mtp | jq .headline
"""

GROUPINGS = ("shape", "place", "module", "overload")


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    add_rows(parser)


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Add the options of tables of ops."""
    parser.add_argument("--rows", type=row_count, default=10, metavar="N", help="how many ops to print (default 10)")
    parser.add_argument("--by", action="append", choices=GROUPINGS, default=[],
                        help="separate ops by shape, place, module or overload; repeat it for several")


def row_count(text: str) -> int:
    """Parse a number of rows."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of rows")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from ..analysis import Analysis

    analysis = Analysis(read(options.trace))
    with working("summarising"):
        result = as_dict(analysis, options.rows, options.by)
    if SETTINGS.json:
        print_json(result)
    else:
        show(analysis, options.rows, options.by)
    return 0


def as_dict(analysis: Analysis, rows: int, by: list[str]) -> dict[str, Any]:
    """The summary as plain values."""
    trace = analysis.trace
    return {
        "source": analysis.recording.source, "events": len(trace), "threads": len(trace.threads),
        "duration_ns": trace.end_ns - trace.start_ns, "dropped": trace.dropped, "headline": analysis.headline,
        "steps": analysis.breakdown.to_dict(), "operators": [row.to_dict() for row in analysis.operators(by)[:rows]],
        "memory_peaks": [peak.to_dict() for peak in analysis.memory_peaks], "advice": analysis.advice.to_dict(),
    }


def show(analysis: Analysis, rows: int, by: list[str]) -> None:
    """Print the summary."""
    from ..analysis.figures import counted, share_text, size_text, time_text
    from ..views.step_summary import PARTS

    trace = analysis.trace
    dropped = f", {trace.dropped:,} dropped" if trace.dropped else ""
    line(f"{analysis.recording.source or 'recording'}: {counted(len(trace), 'event')} on "
         f"{counted(len(trace.threads), 'thread')} in {time_text(trace.end_ns - trace.start_ns)}{dropped}")
    line(analysis.headline, "bold")
    breakdown = analysis.breakdown
    average = breakdown.average
    if average is not None and len(trace):
        line()
        shares, took = average.fractions, time_text(1000 * average.wall_us)
        if analysis.steps.known:
            warm = f", {breakdown.warmup} of them warm-up" if breakdown.warmup else ""
            steps = counted(len(breakdown.rows), "step")
            line(f"{steps} by {breakdown.source.value}{warm}; the average one takes {took}:")
        else:
            line(f"no steps were found; the whole recording, {took}:")
        table(("part", "time", "share", ""),
              [(part, time_text(1000 * average.part_us(part)), share_text(shares[part]),
                "#" * round(40 * shares[part])) for part in PARTS], left=(0, 3))
        if breakdown.differ:
            line(breakdown.differ)
    line()
    operator_table(analysis.operators(by), rows, by)
    for peak in analysis.memory_peaks:
        line()
        # Categories also count memory that is older than the recording, so shares are of their sum.
        holders = peak.by_category or peak.by_op
        whole = sum(holder.bytes for holder in holders) or 1
        older = f", {size_text(whole)} with memory from before the recording" if whole > peak.peak_bytes else ""
        line(f"memory peak on {peak.device}: {size_text(peak.peak_bytes)}{older}")
        table(("held by", "bytes", "share"), [(holder.name, size_text(holder.bytes), share_text(holder.bytes / whole))
                                              for holder in holders[:5]])
    line()
    line(f"advice: {analysis.advice.summary}", "yellow" if analysis.advice.findings else "green")


def operator_table(found: list[Any], rows: int, by: list[str]) -> None:
    """Print the first rows of a list of ops."""
    from ..analysis.figures import share_text, size_text, three_digits, time_text

    shown = found[:rows]
    heads, left = ["name"], [0]
    extra = {"shape": "shapes", "place": "place", "module": "module", "overload": "overload"}
    for word in by:
        left.append(len(heads))
        heads.append(extra[word])
    on_device = any(row.device_ns for row in shown)
    heads += ["calls", "self", "share", "total", "mean"] + (["device"] if on_device else [])
    memory, flops = any(row.self_bytes for row in shown), any(row.flops for row in shown)
    heads += (["self memory"] if memory else []) + (["GFLOPs"] if flops else [])
    cells = []
    for row in shown:
        cell = [row.name, *(str(getattr(row, extra[word]) or "") for word in by), f"{row.calls:,}",
                time_text(row.self_ns),
                share_text(row.self_share), time_text(row.total_ns), time_text(row.mean_ns)]
        cell += ([time_text(row.device_ns)] if on_device else []) + ([size_text(row.self_bytes)] if memory else [])
        cells.append(cell + ([three_digits(row.flops / 1e9) if row.flops else ""] if flops else []))
    table(heads, cells, left=left)
    if len(found) > rows:
        line(f"… and {len(found) - rows} more (--rows)", "dim")
