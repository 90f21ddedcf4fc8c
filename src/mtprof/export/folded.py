"""Folded stacks, one line per path: `main;forward;aten::mm 1234`. flamegraph.pl, inferno and speedscope read it."""

from __future__ import annotations

from collections.abc import Iterator

from ..trace import Trace
from ..views.call_paths import call_paths


def lines(trace: Trace, *, by_module: bool = False) -> Iterator[bytes]:
    """Lines with the self time of each path in microseconds, at least 1, in the order of first appearance."""
    paths = call_paths(trace, by_module=by_module)
    for node in paths.timed():
        text = ";".join(_clean(label) for label in paths.path(node))
        yield f"{text} {max(1, round(paths.self_ns.item(node) / 1000))}\n".encode("utf-8", "replace")


def _clean(label: str) -> str:
    """A label without the characters that separate labels and lines."""
    return " ".join(label.replace(";", ":").split())
