"""The page as one file: markup, style, scripts and data."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from importlib import resources

from ..analysis import Analysis
from ..export.memory_page import chart_parts, embedded
from ..files import write_atomically
from ..ranks import Ranks
from ..recording import Recording
from .content import content_of

_MARKERS = re.compile(r"\{\{(title|style|script|data|memory)\}\}")
# One program, in this order.
SCRIPTS = ("format.js", "columns.js", "table.js", "overview.js", "operators.js", "timeline.js", "flame.js", "memory.js",
           "modules.js", "ranks.js", "compare.js", "run.js", "page.js")


def page_of(recordings: Sequence[Recording], *, most_events: int | None = None, ranks: Ranks | None = None) -> str:
    """The page of a recording; of two, the page of the second with a comparison to the first.

    With `ranks`, to which the recording belongs, there is a page of all of them.
    """
    if not 1 <= len(recordings) <= 2:
        raise ValueError(f"a report takes one recording, or two to compare, not {len(recordings)}")
    analyses = [Analysis(recording) for recording in recordings]
    content = content_of(analyses, most_events, ranks)
    files = resources.files(__package__) / "page_files"
    chart = chart_parts()
    parts = {
        "title": html.escape(f"{content['title']} – mtprof report"),
        "style": (files / "page.css").read_text("utf-8"),
        "script": "\n".join([chart["script"], *((files / name).read_text("utf-8") for name in SCRIPTS)]),
        # The page of memory, which also exists by itself: its style stays with its markup.
        "memory": f"<style>{chart['style']}{(files / 'memory.css').read_text('utf-8')}</style>{chart['body']}",
        "data": embedded(content),
    }
    # Split first, fill in afterwards: inserted text may look like a marker itself.
    pieces = _MARKERS.split((files / "page.html").read_text("utf-8"))
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def write_report(recordings: Sequence[Recording], path: str | os.PathLike[str], *,
                 most_events: int | None = None, ranks: Ranks | None = None) -> None:
    """Write the page; the file appears when it is complete."""
    text = page_of(recordings, most_events=most_events, ranks=ranks).encode()
    write_atomically(path, [text])
