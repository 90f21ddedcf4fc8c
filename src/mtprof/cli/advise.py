"""Print what to change, with evidence.

Looks for steps that wait for data, tiny ops, idle devices, synchronisation, unfused optimizers, threads that wait,
pauses of the garbage collector, slow first steps, changing shapes, and memory. Each finding has its figures, its place
in the code and what it would save at most. If nothing is wrong, it says so."""

from __future__ import annotations

import argparse

from .files import add_force, add_input, check_target, read
from .output import SETTINGS, line, note, print_json, working

EXAMPLES = """
mtprof advise run.mtp
mtprof advise --format md -o advice.md run.mtp
mtprof advise --json run.mtp | jq '.findings[].title'
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--format", choices=("text", "md", "json"), default="text", help="text (default), md or json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file instead")
    parser.add_argument("--fail", action="store_true", help="exit with 1 if anything was found, for checks of a change")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    from ..analysis import Analysis

    if options.output:
        check_target(options.output, options.force, (options.trace,))
    analysis = Analysis(read(options.trace))
    with working("looking for advice"):
        advice = analysis.advice
    form = "json" if SETTINGS.json else options.format
    if options.output:
        import orjson

        from ..files import write_atomically

        text = advice.markdown().encode() if form != "json" else orjson.dumps(advice.to_dict(),
                                                                              option=orjson.OPT_INDENT_2)
        write_atomically(options.output, [text])
        note(f"wrote {options.output}")
    elif form == "json":
        print_json(advice.to_dict())
    elif form == "md":
        print(advice.markdown(), end="")
    else:
        _show(advice)
    return 1 if options.fail and advice.findings else 0


def _show(advice) -> None:
    from ..analysis import Verdict

    if not advice.findings:
        line(advice.summary, "green")
    for number, finding in enumerate(advice.findings, start=1):
        line(f"{number}. {finding.title}", "bold")
        if finding.place:
            line(f"   at      {finding.place}")
        for figure in finding.figures:
            line(f"           {figure.name}: {figure}")
        line(f"   change  {finding.change}")
        line(f"   saves   {finding.saving}")
        line()
    unknown = [check for check in advice.checks if check.verdict is Verdict.UNKNOWN]
    if unknown:
        line("not checked: " + "; ".join(f"{check.kind} ({check.why})" for check in unknown), "dim")
