"""The formats that traces can be written in, by name and by suffix."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import CommandError

if TYPE_CHECKING:
    from ..recording import Recording


@dataclass(frozen=True)
class Format:
    """A format and its suffixes."""

    name: str
    suffixes: tuple[str, ...]
    meaning: str
    write: Callable[[Recording, str], None]


def _chrome(recording: Recording, path: str) -> None:
    recording.export_chrome_trace(path)


def _native(recording: Recording, path: str) -> None:
    recording.save(path)


def _parquet(recording: Recording, path: str) -> None:
    from ..store.flat import write_parquet

    write_parquet(recording.trace, path)


def _csv(recording: Recording, path: str) -> None:
    from ..store.flat import write_csv

    write_csv(recording.trace, path)


def _folded(recording: Recording, path: str) -> None:
    from ..export.folded import lines
    from ..files import write_atomically

    write_atomically(path, lines(recording.trace))


def _speedscope(recording: Recording, path: str) -> None:
    from ..export.speedscope import document
    from ..files import write_atomically

    write_atomically(path, [document(recording.trace, recording.source)])


def _pprof(recording: Recording, path: str) -> None:
    from ..export.pprof import document
    from ..files import write_atomically

    write_atomically(path, [document(recording.trace)])


FORMATS = {form.name: form for form in (
    Format("speedscope", (".speedscope.json", ".speedscope.json.gz"), "speedscope.app", _speedscope),
    Format("chrome", (".json", ".json.gz"), "Chrome trace: Perfetto, chrome://tracing, Holistic Trace Analysis",
           _chrome),
    Format("native", (".mtp",), "trace file with everything; polars, DuckDB and pandas can read it", _native),
    Format("parquet", (".parquet",), "events as a flat table", _parquet),
    Format("csv", (".csv", ".csv.gz"), "events as a flat table", _csv),
    Format("folded", (".folded", ".txt"), "folded stacks for flame graphs", _folded),
    Format("pprof", (".pb", ".pb.gz", ".pprof"), "pprof", _pprof),
)}


def format_of(path: str, name: str | None) -> Format:
    """The format of that name, or the one that a path's suffix gives."""
    if name is not None:
        return FORMATS[name]
    for form in FORMATS.values():
        if os.path.basename(path).endswith(form.suffixes):
            return form
    known = ", ".join(form.suffixes[0] for form in FORMATS.values())
    raise CommandError(f"cannot tell the format of {path} from its name: the suffixes are {known}")


def write(recording: Recording, path: str, form: Format) -> None:
    """Write a recording. The file appears only when it is complete."""
    try:
        form.write(recording, path)
    except ImportError as error:
        raise CommandError(f"cannot write {path}: {error}") from None
