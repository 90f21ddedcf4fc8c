"""The source of a module's class, which files from before 1.6 carry so that a change since then is noticed."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

__all__ = ["source_of", "warn_if_changed"]


def source_of(kind: type) -> tuple[str, str] | None:
    """File and source of a class, or None, with a warning, if there is none."""
    try:
        return inspect.getsourcefile(kind) or "", inspect.getsource(kind)
    except (OSError, TypeError):
        warnings.warn("Couldn't retrieve source code for container of type " + kind.__name__ + ". It won't be checked "
                      "for correctness upon loading.", stacklevel=2)
        return None


def warn_if_changed(kind: Any, file: Any, source: Any) -> None:
    """Warn if a class has another source than it had when the file was written."""
    try:
        now = inspect.getsource(kind)
    except (OSError, TypeError):
        return  # nothing to compare with
    if now != source:
        warning = importlib.import_module(f"{__name__.partition('.')[0]}.serialization").SourceChangeWarning
        warnings.warn(f"source code of class '{kind.__module__}.{kind.__qualname__}' has changed since the file was "
                      "written: you can retrieve the original source code by accessing the object's source attribute",
                      warning, stacklevel=2)
