"""`load`: read a recording from any kind of trace file."""

from __future__ import annotations

import os
import warnings
from typing import Any

from .errors import BadFile, CutShort
from .recording import Recording
from .store import arrow, kineto
from .store.arrow import MAGIC

_GZIP = b"\x1f\x8b"


def load(path: str | os.PathLike[str]) -> Any:
    """Read a recording: a trace file (`.mtp`), or a Chrome trace (`.json`, `.json.gz`) of PyTorch, torch_npu or ours.

    The content decides, not the name. If a file was cut short, its complete part is read, with a warning. A file that
    is not a trace raises `BadFile`, a ValueError that names the file and the fault. A folder with the traces of a job's
    ranks gives `Ranks`, which reads them one at a time.
    """
    name = os.fspath(path)
    if os.path.isdir(name):
        from .ranks import Ranks

        return Ranks(name)
    with open(name, "rb") as file:
        start = file.read(64)
    if not start:
        raise BadFile(f"{name} is empty")
    if start.startswith(MAGIC):
        trace, cut_short = arrow.read(name)
    elif start.startswith(_GZIP) or start.lstrip()[:1] in (b"{", b"[") or not start.strip():
        trace, cut_short = kineto.salvage(name)
    else:
        raise BadFile(f"{name} is not a trace: it begins with {start[:16]!r}, unlike JSON, gzip or Arrow")
    if cut_short:
        warnings.warn(CutShort(name), stacklevel=2)
    return Recording(trace, source=os.path.basename(name))
