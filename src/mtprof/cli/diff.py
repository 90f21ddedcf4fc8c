"""Compare two traces and separate change from noise.

Compares a step, its parts, ops and modules. If both traces have three steps or more, each difference has a 95 %
interval: noise alone stays within it 95 times in 100. A difference is a change if its interval excludes zero."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from .files import add_input, read
from .output import SETTINGS, line, note, print_json, table, working
from .summary import row_count

if TYPE_CHECKING:
    from ..analysis import Comparison, Difference

EXAMPLES = """
mtprof diff before.mtp after.mtp
mtprof diff --fail-on 5% main.mtp branch.mtp       exit with 1 if a step became slower by 5 % or more
mtprof diff --fail-on 10% --on operators a.json b.json
"""

_GROUPS = ("step", "parts", "operators", "modules")


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser, "before")
    add_input(parser, "after")
    parser.add_argument("--rows", type=row_count, default=15, metavar="N", help="how many ops and modules (default 15)")
    parser.add_argument("--all", action="store_true", help="print rows without a change too")
    parser.add_argument("--fail-on", type=_share, metavar="PERCENT",
                        help="exit with 1 if something became slower by this much, beyond noise")
    parser.add_argument("--on", choices=_GROUPS, default="step", help="what --fail-on looks at (default: step)")


def _share(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", text.strip())
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage such as 5%")
    return float(found[1]) / 100


def run(options: argparse.Namespace) -> int:
    from ..analysis import Analysis, compare

    before, after = Analysis(read(options.before)), Analysis(read(options.after))
    with working("comparing"):
        result = compare(before, after)
    failed = _slower(result, options.on, options.fail_on) if options.fail_on is not None else []
    if SETTINGS.json:
        print_json({**result.to_dict(), "failed": [row.name for row in failed]})
    else:
        _show(result, options)
    if failed:
        note(f"mtprof: slower by {options.fail_on:.1%} or more: " + ", ".join(row.name for row in failed[:10]))
    return 1 if failed else 0


def _slower(result: Comparison, group: str, limit: float) -> list[Difference]:
    """Rows that became slower by at least `limit`, beyond noise where that is known.

    Ops, modules and parts count only if they matter: the difference must also be at least the limit applied to a whole
    step's time. Otherwise a row of a microsecond could fail a check.
    """
    from ..analysis import Change

    rows = [result.step] if group == "step" else getattr(result, group)
    real = (Change.SLOWER, Change.UNKNOWN, Change.NEW)
    least = limit * result.step.before_ns if group != "step" else 0.0
    return [row for row in rows if row.change in real and row.difference_ns > 0 and row.difference_ns >= least
            and (row.ratio is None or row.ratio >= limit)]


def _show(result: Comparison, options: argparse.Namespace) -> None:
    from ..analysis import Change
    from ..analysis.figures import size_text

    style = {Change.SLOWER: "red", Change.FASTER: "green"}
    line(result.summary, style.get(result.step.change, "bold"))
    if result.peak_bytes is not None:
        line(f"Memory peak: {size_text(result.peak_bytes[0])} before, {size_text(result.peak_bytes[1])} after.")
    for title, rows in (("parts of a step", result.parts), ("ops, self time per step", result.operators),
                        ("modules, forward per step", result.modules)):
        changed = [row for row in rows if options.all or row.change is not Change.SAME]
        if not rows:
            continue
        line()
        line(f"{title}: {sum(row.change is not Change.SAME for row in rows)} of {len(rows)} changed", "bold")
        table(("name", "before", "after", "difference", "95 % interval", "change", ""),
              [_cells(row) for row in changed[: options.rows]],
              styles=[style.get(row.change, "") for row in changed[: options.rows]])
        if len(changed) > options.rows:
            line(f"… and {len(changed) - options.rows} more (--rows)", "dim")


def _cells(row: Difference) -> tuple[str, ...]:
    from ..analysis.figures import time_text

    around = ""
    if row.low_ns is not None and row.high_ns is not None:
        around = f"{_signed(row.low_ns)} to {_signed(row.high_ns)}"
    return (row.name, time_text(row.before_ns), time_text(row.after_ns), _signed(row.difference_ns), around,
            f"{row.ratio:+.1%}" if row.ratio is not None else "", row.change.value)


def _signed(time_ns: float) -> str:
    from ..analysis.figures import time_text

    return ("+" if time_ns >= 0 else "-") + time_text(abs(time_ns))
