"""`torch._utils_internal`: functions that builds of PyTorch replace; only those that its tests use."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["USE_GLOBAL_DEPS", "get_file_path", "get_writable_path", "log_export_usage"]

USE_GLOBAL_DEPS = False  # there are no shared libraries to load
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def deprecated() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for a function whose name is about to get an underscore: its old name, in the module, warns."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if "." in function.__qualname__.replace("<locals>.", "") and "<locals>" not in function.__qualname__:
            raise AssertionError(f"{function.__qualname__}: only functions of a module can be deprecated")
        if not function.__name__.startswith("_"):
            raise RuntimeError(f"{function.__name__}: the function that replaces a deprecated one begins with an "
                               "underscore")

        @functools.wraps(function)
        def old(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(f"{function.__name__[1:]} is DEPRECATED, please use {function.__name__}", UserWarning,
                          stacklevel=2)
            return function(*args, **kwargs)

        name = function.__name__[1:]
        old.__name__, old.__qualname__ = name, function.__qualname__.replace(function.__name__, name)
        space = sys.modules[function.__module__]
        if hasattr(space, name):
            raise RuntimeError(f"Cannot create alias {name!r} -> symbol already exists in {space.__name__}")
        setattr(space, name, old)
        return function

    return decorate


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
