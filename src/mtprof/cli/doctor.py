"""Check a trace, and repair it.

Checks the rules that every trace keeps (nesting, references, order), and looks for contents that no program
produces: negative times, events that cross, device work without a launch, backward events without a forward, missing
stretches, dropped events. --repair writes a trace without the faults."""

from __future__ import annotations

import argparse
import warnings

from .files import add_force, check_target, read
from .output import SETTINGS, line, note, print_json, working

EXAMPLES = """
mtprof doctor trace.json.gz
mtprof doctor --repair fixed.mtp trace.json.gz
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", help="a recording (.mtp) or a Chrome trace (.json, .json.gz)")
    parser.add_argument("--repair", metavar="FILE", help="write a trace without the faults")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there is any fault")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    from ..analysis.health import Ailment, examine, repaired
    from ..errors import CutShort
    from ..recording import Recording
    from .formats import format_of, write

    if options.repair:
        check_target(options.repair, options.force, (options.trace,))
        form = format_of(options.repair, None)
    with warnings.catch_warnings(record=True) as said:  # report a file that is cut short with the other faults
        warnings.simplefilter("always")
        recording = read(options.trace, salvage=True)
    cut_short = [warning for warning in said if warning.category is CutShort]
    for warning in said:
        if warning not in cut_short:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    with working("examining"):
        ailments = [Ailment("cut short", "the file ends before the trace does; its last rows are missing")
                    for _ in cut_short]
        ailments += examine(recording.trace, options.trace)
    if options.repair:
        with working("repairing"):
            mended, done = repaired(recording.trace)
            write(Recording(mended), options.repair, form)
    if SETTINGS.json:
        print_json({"faults": [vars(ailment) for ailment in ailments], "repaired": options.repair})
    else:
        for ailment in ailments:
            line(f"{ailment.kind}: {ailment.text}", "yellow")
        if not ailments:
            line("no faults", "green")
        if options.repair:
            for text in done:
                line(text)
            note(f"wrote {options.repair}")
    return 1 if ailments and options.strict else 0
