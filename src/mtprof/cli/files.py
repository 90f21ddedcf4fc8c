"""Traces that commands read and files that they write."""

from __future__ import annotations

import argparse
import os
import warnings
from typing import TYPE_CHECKING

from .errors import CommandError
from .output import working

if TYPE_CHECKING:
    from ..recording import Recording


def add_input(parser: argparse.ArgumentParser, name: str = "trace", several: bool = False) -> None:
    """Add the argument for a trace, or for several."""
    parser.add_argument(name, metavar=name.upper(), nargs="+" if several else None,
                        help="a recording (.mtp), or a Chrome trace of PyTorch (.json, .json.gz)")


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that lets a command replace a file."""
    parser.add_argument("--force", "-f", action="store_true", help="replace an existing file")


def read(path: str, *, salvage: bool = False) -> Recording:
    """Read a trace, or raise an error of one line.

    A Chrome trace that is cut short is an error unless `salvage`, because its end may hold what the question is about.
    A recording of ours may be read while it is being written; it is then cut short.
    """
    from ..errors import BadFile, CutShort
    from ..loading import load

    if os.path.isdir(path):
        raise CommandError(f"cannot read {path}: it is a directory, not a trace; 'mtprof ranks' reads directories "
                           "that hold a trace of each rank")
    try:
        with working(f"reading {os.path.basename(path)}"), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = _flat(path) or load(path)
        cut_short = any(warning.category is CutShort for warning in said)
        if cut_short and not salvage and not _is_recording(path):
            raise CommandError(f"cannot read {path}: it is cut short ('mtprof doctor --repair whole.mtp {path}' keeps "
                               "the complete part)")
        for warning in said:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return found
    except FileNotFoundError:
        raise CommandError(f"cannot read {path}: there is no such file") from None
    except BadFile as error:
        text = str(error)
        raise CommandError(text if path in text else f"cannot read {path}: {text}") from None
    except ImportError as error:
        raise CommandError(f"cannot read {path}: {error}") from None
    except (RecursionError, OverflowError) as error:
        raise CommandError(f"cannot read {path}: it is nested too deeply, or a number is out of range") from error
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from None


def _is_recording(path: str) -> bool:
    from ..store.arrow import MAGIC

    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _flat(path: str) -> Recording | None:
    """The recording in a Parquet or CSV file; None for other files."""
    if os.path.isdir(path):
        return None
    from ..store import flat

    with open(path, "rb") as file:
        start = file.read(4096)
    if start.startswith(flat.PARQUET_MAGIC):
        trace = flat.read_parquet(path)
    elif flat.is_csv(path, start):
        trace = flat.read_csv(path)
    else:
        return None
    from ..recording import Recording

    return Recording(trace, source=os.path.basename(path))


def check_target(path: str, force: bool, sources: tuple[str, ...] = ()) -> str:
    """The path, if it can be written; checked before the work is done."""
    if not path:
        raise CommandError("cannot write a file without a name")
    if os.path.isdir(path):
        raise CommandError(f"cannot write {path}: it is a directory")
    try:
        os.stat(path)
        exists = True
    except FileNotFoundError:
        exists = os.path.islink(path)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
    if exists and os.path.isfile(path):
        if any(os.path.exists(source) and os.path.samefile(path, source) for source in sources):
            raise CommandError(f"cannot write {path}: it is the input file")
        if not force:
            raise CommandError(f"cannot write {path}: it already exists (--force replaces it)")
        if not os.access(path, os.W_OK):
            raise CommandError(f"cannot write {path}: it is read-only")
    if not exists or os.path.isfile(path):
        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(folder):
            raise CommandError(f"cannot write {path}: the directory {folder} does not exist")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise CommandError(f"cannot write {path}: the directory {folder} is read-only")
    return path


SUFFIXES = (".pt.trace.json.gz", ".pt.trace.json", ".json.gz", ".json", ".mtp", ".parquet", ".csv")


def stem(path: str) -> str:
    """A path without the suffix of a trace.

    >>> stem("a/run.pt.trace.json.gz"), stem("run.mtp"), stem("odd.name")
    ('a/run', 'run', 'odd.name')
    """
    for suffix in SUFFIXES:
        if path.endswith(suffix) and len(os.path.basename(path)) > len(suffix):
            return path[: -len(suffix)]
    return path
