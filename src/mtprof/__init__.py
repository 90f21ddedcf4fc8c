"""Traces of programs: load, analyse and save them. Needs no runtime.

>>> import mtprof
>>> recording = mtprof.load("trace.json")  # doctest: +SKIP
>>> print(recording.table())  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import BadFile, MissingTable
    from .loading import load
    from .ranks import Ranks
    from .recording import Recording
    from .trace import Trace

__all__ = ["BadFile", "MissingTable", "Ranks", "Recording", "Trace", "load"]

# Loaded on first use: the command line must start fast, and the recorder needs only the schema.
_PLACES = {"load": "loading", "Ranks": "ranks", "Recording": "recording", "Trace": "trace", "MissingTable": "errors",
           "BadFile": "errors"}


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext mtprof`: adds `%%mtprof`, which profiles a cell of a notebook."""
    from .notebook.magic import load_ipython_extension

    load_ipython_extension(shell)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'mtprof' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mtprof.{_PLACES[name]}"), name)
