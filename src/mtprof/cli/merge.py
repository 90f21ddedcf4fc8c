"""Join the traces of several processes or ranks.

Clocks are aligned by the time of day that each trace states. --align steps aligns the starts of the first common step
instead, for machines whose clocks differ. Processes with the same number stay separate."""

from __future__ import annotations

import argparse

from .errors import CommandError
from .files import add_force, add_input, check_target, read
from .output import SETTINGS, line, print_json, working

EXAMPLES = """
mtprof merge rank0.mtp rank1.mtp -o all.mtp
mtprof merge --align steps rank*.json.gz -o all.json.gz
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser, "traces", several=True)
    parser.add_argument("-o", "--output", metavar="FILE", required=True,
                        help="the joined trace: .mtp, .json or .json.gz")
    parser.add_argument("--align", choices=("clock", "steps"), default="clock",
                        help="by the time of day (default), or by the start of the first common step")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    from ..analysis.merging import merged
    from ..recording import Recording
    from .formats import format_of, write

    if len(options.traces) < 2:
        raise CommandError("merge needs two traces or more")
    check_target(options.output, options.force, tuple(options.traces))
    form = format_of(options.output, None)
    traces = [read(path).trace for path in options.traces]
    with working("joining"):
        try:
            joined, offsets = merged(traces, by_steps=options.align == "steps")
        except ValueError as error:
            raise CommandError(str(error)) from None
        write(Recording(joined), options.output, form)
    if SETTINGS.json:
        print_json({"output": options.output, "events": len(joined), "offsets_ns": offsets})
    else:
        line(f"{options.output}: {len(joined):,} events of {len(traces)} traces")
    return 0
