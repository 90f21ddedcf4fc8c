"""`torch._utils_internal`: what PyTorch lets its builds replace. Only what its tests use."""

from __future__ import annotations

import os
import tempfile

__all__ = ["USE_GLOBAL_DEPS", "get_file_path", "get_writable_path", "log_export_usage"]

USE_GLOBAL_DEPS = False  # there are no shared libraries to load
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def get_file_path(*path_components: str) -> str:
    """The path of a file of the package; a leading "torch" names the package."""
    parts = path_components[1:] if path_components[:1] == ("torch",) else path_components
    return os.path.join(_PACKAGE, *parts)


def get_writable_path(path: str) -> str:
    """The path itself if it can be written, else a new temporary directory."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def log_export_usage(**kwargs: object) -> None:
    """PyTorch can be built to report the use of its exporter; this runtime reports nothing."""


def get_file_path_2(*path_components: str) -> str:
    """A file beside one that is named first."""
    return os.path.join(*path_components)
