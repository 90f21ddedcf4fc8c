"""Files with memory over time: PyTorch's two JSON formats, and a page to look at."""

from __future__ import annotations

import os

import numpy as np
import orjson

from ..files import write_atomically
from ..views.memory_profile import Categories, MemoryProfile
from ..views.memory_timeline import single_changes, totals
from .memory_page import page_of


class MemoryProfileTimeline:
    """Writes a memory profile, as PyTorch's class of this name does."""

    def __init__(self, memory_profile: MemoryProfile) -> None:
        self.profile = memory_profile

    @property
    def timeline(self) -> tuple[object, ...]:
        """The changes of memory in order of time."""
        return self.profile.timeline

    @property
    def categories(self) -> Categories:
        """The category of each version of each block."""
        return self.profile.categories

    def write(self, path: str | os.PathLike[str], device: str) -> None:
        """Write the format that the name gives: `.html` (also `.html.gz`), `raw.json.gz`, else totals, compressed if
        `.gz`."""
        name = os.fsdecode(path)
        if name.endswith((".html", ".html.gz")):
            self.export_memory_timeline_html(name, device)
        elif name.endswith("raw.json.gz"):
            self.export_memory_timeline_raw(name, device)
        else:
            self.export_memory_timeline(name, device)

    def _coalesce_timeline(self, device_str: str) -> tuple[list[int], list[list[int]]]:
        times, sizes = totals(self.profile, device_str)
        # PyTorch begins each row with a zero, the lower edge of a stacked plot.
        return times.tolist(), np.pad(sizes, ((0, 0), (1, 0))).tolist()

    def export_memory_timeline(self, path: str | os.PathLike[str], device_str: str) -> None:
        """Write `[times in microseconds, [bytes per category at each]]`."""
        write_atomically(path, [orjson.dumps(self._coalesce_timeline(device_str))])

    def export_memory_timeline_raw(self, path: str | os.PathLike[str], device_str: str) -> None:
        """Write `[time in nanoseconds, action, bytes, category]` for each change."""
        rows = np.stack(single_changes(self.profile, device_str), axis=1)
        write_atomically(path, [orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)])

    def export_memory_timeline_html(self, path: str | os.PathLike[str], device_str: str,
                                    title: str | None = None) -> None:
        """Write an interactive page that needs only a browser."""
        write_atomically(path, [page_of(self.profile, device_str, title).encode("utf-8", "replace")])
