"""Keep some steps or a stretch of time.

Everything that began in that range stays, with memory, stacks and modules. Steps are numbered from 0 as in
'mtprof summary'; times are seconds from the start of the recording."""

from __future__ import annotations

import argparse
import re

from .errors import CommandError
from .files import add_force, add_input, check_target, read
from .output import SETTINGS, line, print_json, working

EXAMPLES = """
mtprof trim --steps 3-5 run.mtp -o three.mtp
mtprof trim --time 1.5-2 trace.json.gz -o part.json.gz
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--steps", metavar="A-B", help="the steps from A to B, both included; or one step")
    which.add_argument("--time", metavar="A-B", help="seconds from A to B; either may be left out")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the new trace: .mtp, .json or .json.gz")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    from ..analysis.steps import find_steps
    from ..recording import Recording
    from .formats import format_of, write

    check_target(options.output, options.force, (options.trace,))
    form = format_of(options.output, None)
    trace = read(options.trace).trace
    if options.steps:
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", options.steps)
        if not found:
            raise CommandError(f"--steps needs a number or a range such as 3-5, not '{options.steps}'")
        first, last = int(found[1]), int(found[2] or found[1])
        steps = find_steps(trace)
        if not steps.known:
            raise CommandError(f"{options.trace} has no steps: no ProfilerStep events, no optimizer, no loader")
        chosen = (steps.number >= first) & (steps.number <= last)
        if not chosen.any():
            raise CommandError(f"{options.trace} has steps {steps.number.min()} to {steps.number.max()}, "
                               f"not {options.steps}")
        low, high = int(steps.start_ns[chosen].min()), int(steps.end_ns[chosen].max())
    else:
        found = re.fullmatch(r"(\d*\.?\d*)-(\d*\.?\d*)", options.time)
        if not found or not (found[1] or found[2]):
            raise CommandError(f"--time needs seconds such as 1.5-2, not '{options.time}'")
        low = trace.start_ns + int(float(found[1] or 0) * 1e9)
        high = trace.start_ns + int(float(found[2]) * 1e9) if found[2] else trace.end_ns
        if high < low:
            raise CommandError(f"--time {options.time} ends before it begins")
        if low > trace.end_ns:
            raise CommandError(f"{options.trace} ends after {(trace.end_ns - trace.start_ns) / 1e9:.3g} s, "
                               f"before --time {options.time}")
    from ..analysis.trimming import trimmed

    with working("writing"):
        part = trimmed(trace, low, high)
        write(Recording(part), options.output, form)
    if SETTINGS.json:
        print_json({"output": options.output, "events": len(part), "of": len(trace)})
    else:
        line(f"{options.output}: {len(part):,} of {len(trace):,} events")
    return 0
