"""Ask how devices were used: idle time, overlap, launches, critical path.

The analyses of Holistic Trace Analysis, on any device: 'temporal' (busy and idle), 'idle' (and why), 'kernels',
'overlap' (of communication with computation), 'queue' (launched work that waits), 'launches',
'critical-path'. On a trace of the CPU alone, only the critical path applies."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .files import add_input, read
from .output import SETTINGS, line, print_json, table, working
from .summary import row_count

if TYPE_CHECKING:
    from ..analysis import Analysis

EXAMPLES = """
mtprof analyse trace.json.gz
mtprof analyse --what idle --what launches trace.json
mtprof analyse --what critical-path --json run.mtp
"""

WHAT = ("temporal", "idle", "kernels", "overlap", "queue", "launches", "critical-path")


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--what", action="append", choices=WHAT,
                        help="which analysis; repeat it for several (default: all)")
    parser.add_argument("--rows", type=row_count, default=10, metavar="N", help="rows of a table (default 10)")


def run(options: argparse.Namespace) -> int:
    from ..analysis import Analysis

    analysis = Analysis(read(options.trace))
    wanted = options.what or WHAT
    with working("analysing"):
        results = {word: _ask(analysis, word) for word in wanted}
    if SETTINGS.json:
        print_json(results)
        return 0
    for word, result in results.items():
        line(word, "bold")
        if not result:
            line("no device work in this trace")
        else:
            _show(word, result, options.rows)
        line()
    return 0


def _ask(analysis: Analysis, word: str) -> Any:
    from ..analysis.device import critical_path, idle, kernels, launches, queue, temporal

    if word == "critical-path":
        return critical_path.critical_path(analysis).to_dict()
    if word == "overlap":
        return [{"device": row.device, "overlapped_share": row.overlapped_share}
                for row in temporal.temporal_breakdown(analysis)]
    ask: Any = {"temporal": temporal.temporal_breakdown, "idle": idle.idle_times, "kernels": kernels.kernel_breakdown,
           "queue": queue.queue_lengths, "launches": launches.launch_statistics}[word]
    return [row.to_dict() for row in ask(analysis)]


def _show(word: str, result: Any, rows: int) -> None:
    from ..analysis.figures import share_text, time_text

    if word == "critical-path":
        total = result["total_ns"]
        line(f"{time_text(total)}: " + ", ".join(f"{lane} {time_text(ns)}" for lane,
                                                 ns in result["by_lane_ns"].items()))
        table(("name", "lane", "time", "share"), [(row["name"], row["lane"], time_text(row["time_ns"]),
                                                   share_text(row["share"])) for row in result["by_name"][:rows]],
                                                   left=(0, 1))
        return
    heads = [key for key in result[0] if key != "by_cause_ns"]
    causes = list(result[0].get("by_cause_ns", {}))
    table([head.removesuffix("_ns").replace("_", " ") for head in heads] + causes,
          [[_text(head, row[head]) for head in heads] + [time_text(row["by_cause_ns"][cause]) for cause in causes]
           for row in result[:rows]], left=[at for at, head in enumerate(heads) if head in ("device", "name", "work",
                                                                                            "place")])
    if len(result) > rows:
        line(f"… and {len(result) - rows} more (--rows)", "dim")


def _text(head: str, value: Any) -> str:
    from ..analysis.figures import share_text, three_digits, time_text

    if value is None:
        return ""
    if head.endswith("_ns"):
        return time_text(value)
    if "share" in head:
        return share_text(value)
    return three_digits(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
