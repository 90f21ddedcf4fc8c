"""What commands print: tables, lines and JSON on stdout, notes and progress on stderr.

On a terminal, tables fit its width and have colour, if rich is installed. In a pipe they are plain text with full
names, so that other programs can read them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from .errors import one_line

PATIENCE_S = 0.5  # work that takes longer shows its progress


@dataclass
class _Settings:
    json: bool = False
    color: str = "auto"
    quiet: bool = False


SETTINGS = _Settings()


def set_up(options: argparse.Namespace) -> None:
    """Apply the common options; from now on warnings are one line on stderr."""
    SETTINGS.json, SETTINGS.color, SETTINGS.quiet = options.json, options.color, options.quiet

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"mtprof: warning: {one_line(str(message))}", file=sys.stderr)

    warnings.showwarning = show


def colored(stream: TextIO) -> bool:
    """Whether to write colours to a stream."""
    if SETTINGS.color != "auto":
        return SETTINGS.color == "always"
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def width() -> int | None:
    """Width of the terminal that output goes to; None if it does not go to a terminal."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdigit():
        return None
    return shutil.get_terminal_size().columns


def printable(text: str) -> str:
    """Text from a trace, made harmless: a name cannot move the cursor or change colours."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def line(text: str = "", style: str = "") -> None:
    """Print a line; `style` is "bold", "red", "green", "yellow" or "dim"."""
    text = "\n".join(printable(part) for part in text.split("\n"))
    print(styled(text, style) if style and colored(sys.stdout) else text)


_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


def styled(text: str, style: str) -> str:
    """Text with the control codes of a terminal."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def note(text: str) -> None:
    """Print a remark for people: on stderr, and not with --quiet."""
    if not SETTINGS.quiet:
        print(printable(text), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a result as JSON, with a line break at the end."""
    import orjson

    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS,
                        default=str)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,),
          styles: Sequence[str] | None = None) -> None:
    """Print a table; columns in `left` are aligned to the left.

    If the terminal is too narrow, these columns become shorter. If that is not enough, the last columns are left out.
    """
    if not rows:
        return
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(head), *(len(row[at]) for row in cells)) for at, head in enumerate(heads)]
    room = width()
    if room is not None:
        least = [min(12, wide) if at in left else wide for at, wide in enumerate(widths)]
        while len(widths) > 2 and sum(least) + 2 * (len(least) - 1) > room:
            widths.pop()
            least.pop()
        too_wide = sum(widths) + 2 * (len(widths) - 1) - room
        for at in sorted((at for at in left if at < len(widths)), key=lambda at: -widths[at]):
            narrower = max(least[at], widths[at] - max(0, too_wide))
            too_wide -= widths[at] - narrower
            widths[at] = narrower
        heads, cells = heads[: len(widths)], [row[: len(widths)] for row in cells]

    def text(row: Sequence[str]) -> str:
        shown = []
        for at, cell in enumerate(row):
            cell = cell if len(cell) <= widths[at] else cell[: widths[at] - 1] + "…"
            shown.append(cell.ljust(widths[at]) if at in left else cell.rjust(widths[at]))
        return "  ".join(shown).rstrip()

    color = colored(sys.stdout)
    print(styled(text(heads), "bold") if color else text(heads))
    for place, row in enumerate(cells):
        style = styles[place] if styles else ""
        print(styled(text(row), style) if style and color else text(row))


@contextlib.contextmanager
def working(what: str, total: int | None = None) -> Iterator[Any]:
    """Show progress on stderr, if the work takes a while and stderr is a terminal. Yields a function to call per unit.
    """
    done = [0]

    def advance(count: int = 1) -> None:
        done[0] += count

    if SETTINGS.quiet or not sys.stderr.isatty() or SETTINGS.json:
        yield advance
        return
    finished = threading.Event()
    shower = threading.Thread(target=_show, args=(what, total, done, finished), daemon=True)
    shower.start()
    try:
        yield advance
    finally:
        finished.set()
        shower.join()


def _show(what: str, total: int | None, done: list[int], finished: threading.Event) -> None:
    if finished.wait(PATIENCE_S):
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        _show_plainly(what, finished)
        return
    console = Console(stderr=True, no_color=not colored(sys.stderr))
    with Progress(TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), console=console,
                  transient=True) as progress:
        task = progress.add_task(printable(what), total=total)
        while not finished.wait(0.1):
            if total is not None:
                progress.update(task, completed=done[0])


def _show_plainly(what: str, finished: threading.Event) -> None:
    began = time.monotonic()
    while not finished.wait(0.5):
        print(f"\r{printable(what)} … {time.monotonic() - began:.0f} s", end="", file=sys.stderr, flush=True)
    print("\r" + " " * (len(what) + 12) + "\r", end="", file=sys.stderr, flush=True)
