"""Write a trace in another format.

The suffix of the new file chooses the format: .mtp (native), .json or .json.gz (Chrome), .parquet, .csv, .folded,
.speedscope.json, .pb.gz (pprof). The first five can be read back. Folded stacks, speedscope and pprof hold sums of
paths instead of events, and cannot."""

from __future__ import annotations

import argparse

from .files import add_force, add_input, check_target, read
from .formats import FORMATS, format_of, write
from .output import SETTINGS, line, print_json, working

EXAMPLES = """
mtprof convert trace.json.gz run.mtp
mtprof convert run.mtp stacks.folded
mtprof convert run.mtp profile.pb.gz && pprof -http: profile.pb.gz
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("output", metavar="OUTPUT", help="the new file")
    parser.add_argument("--to", choices=tuple(FORMATS), help="the format, instead of the one by the suffix")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    check_target(options.output, options.force, (options.trace,))
    form = format_of(options.output, options.to)
    recording = read(options.trace)
    with working(f"writing {form.name}"):
        write(recording, options.output, form)
    if SETTINGS.json:
        print_json({"output": options.output, "format": form.name, "events": len(recording.trace)})
    else:
        from ..analysis.figures import counted

        line(f"{options.output}: {counted(len(recording.trace), 'event')} as {form.name}")
    return 0
