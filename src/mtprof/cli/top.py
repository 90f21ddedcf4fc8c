"""Print the busiest ops, again and again while a program runs.

For a finished trace it prints one table. For a recording that 'mtprof run' is still writing, it prints a new table
every few seconds (--every), until the recording is finished or you press Ctrl-C."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from typing import TYPE_CHECKING

from .errors import CommandError
from .files import add_input, read
from .output import SETTINGS, line, note, print_json
from .summary import add_rows, operator_table

if TYPE_CHECKING:
    from ..analysis import Analysis

EXAMPLES = """
mtprof top run.mtp
mtprof top --live --every 1 train.mtp              in another terminal, while 'mtprof run train.py' runs
mtprof top --rows 30 --by module run.mtp
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--live", action="store_true", help="repeat while the file grows")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS",
                        help="with --live, seconds between tables (default 2)")
    parser.add_argument("--times", type=int, metavar="N", help="with --live, stop after N tables")
    add_rows(parser)


def run(options: argparse.Namespace) -> int:
    from ..analysis import Analysis

    if not options.live:
        _show(Analysis(read(options.trace)), options)
        return 0
    if options.every <= 0:
        raise CommandError(f"--every needs a positive number of seconds, not {options.every:g}")
    if not _appears(options.trace):
        note(f"mtprof: waiting for {options.trace}, which 'mtprof run --stream' writes while the program runs")
    shown, size = 0, -1
    while True:
        now = os.path.getsize(options.trace) if os.path.exists(options.trace) else -1
        if now != size and now > 0:
            size = now
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about a file that is cut short: it is still being written
                try:
                    recording = read(options.trace)
                except CommandError:
                    if not _may_grow(options.trace):
                        raise
                    recording = None  # it has nothing readable yet
            if recording is not None:
                if sys.stdout.isatty() and not SETTINGS.json:
                    print("\x1b[H\x1b[2J", end="")
                _show(Analysis(recording), options)
                sys.stdout.flush()
                shown += 1
                if recording.trace.metadata.get("finished", True) and is_whole(options.trace):
                    return 0
        if options.times is not None and shown >= options.times:
            return 0
        try:
            time.sleep(options.every)
        except KeyboardInterrupt:
            return 0


def _appears(path: str) -> bool:
    """Whether the file exists; an error if later writing cannot make it a trace."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None
    return True


def _may_grow(path: str) -> bool:
    """Whether an unreadable file may be the start of a recording that is still being written."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        start = file.read(6)
    return b"ARROW1".startswith(start)


def is_whole(path: str) -> bool:
    """Whether a recording is closed: an Arrow file ends as it begins; a Chrome trace appears when it is complete."""
    with open(path, "rb") as file:
        start = file.read(6)
        file.seek(-6, os.SEEK_END)
        return start != b"ARROW1" or file.read(6) == b"ARROW1"


def _show(analysis: Analysis, options: argparse.Namespace) -> None:
    from ..analysis.figures import counted

    rows = analysis.operators(options.by)
    if SETTINGS.json:
        print_json([row.to_dict() for row in rows[: options.rows]])
        return
    trace = analysis.trace
    steps = counted(len(analysis.steps), "step") if analysis.steps.known else "no steps"
    line(f"{counted(len(trace), 'event')}, {steps}, "
         f"{(trace.end_ns - trace.start_ns) / 1e9:.1f} s", "bold")
    operator_table(rows, options.rows, options.by)
