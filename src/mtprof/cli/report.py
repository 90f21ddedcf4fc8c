"""Write a page that shows a trace.

One HTML file that opens from disk, without a network. With two traces, the page also compares them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .errors import CommandError
from .files import add_force, add_input, check_target, read, stem
from .output import SETTINGS, line, print_json, working

if TYPE_CHECKING:
    from ..recording import Recording

EXAMPLES = """
mtprof report run.mtp
mtprof report before.mtp after.mtp -o compare.html
mtprof report trace.json.gz --force
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser, "traces", several=True)
    parser.add_argument("-o", "--output", metavar="FILE", help="the page (default: the trace's name with .html)")
    add_force(parser)


def run(options: argparse.Namespace) -> int:
    if len(options.traces) > 2:
        raise CommandError(f"report takes one trace, or two to compare, not {len(options.traces)} ('mtprof "
                           "merge' joins traces of several processes, 'mtprof ranks' shows those of a job)")
    page = options.output or f"{stem(options.traces[0])}.html"
    check_target(page, options.force, tuple(options.traces))
    write([read(path) for path in options.traces], page)
    if SETTINGS.json:
        print_json({"report": page})
    else:
        line(page)
    return 0


def write(recordings: Sequence[Recording], path: str) -> None:
    """Write the page for some recordings."""
    from importlib.util import find_spec

    if find_spec("mtprof.report") is None:
        raise CommandError("this installation cannot write reports (there is no mtprof.report)")
    from importlib import import_module

    with working("writing the report"):
        import_module("mtprof.report").write_report(recordings, path)
