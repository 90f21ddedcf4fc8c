"""`torch.hub`: nothing is downloaded by this runtime."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any
from urllib.parse import urlparse

from ._absent import refusing

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir",
           "urlparse"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the part of a file's name that its checksum begins with
REASON = ("torch.hub.{0}: this runtime does not download code or weights. Fetch the file yourself and use torch.load, "
          "or import the repository's Python code.")

load = refusing("load", NotImplementedError, REASON.format("load"))
list = refusing("list", NotImplementedError, REASON.format("list"))
help = refusing("help", NotImplementedError, REASON.format("help"))
load_state_dict_from_url = refusing("load_state_dict_from_url", NotImplementedError,
                                    REASON.format("load_state_dict_from_url"))
download_url_to_file = refusing("download_url_to_file", NotImplementedError, REASON.format("download_url_to_file"))


class _Place:
    """Where the user said downloads would go."""

    directory: str | None = None


def get_dir() -> str:
    """The directory in which PyTorch keeps what it downloads."""
    if _Place.directory is not None:
        return _Place.directory
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The directory in which PyTorch keeps files of its own."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str) -> None:
    """Set what `get_dir` returns."""
    _Place.directory = os.path.expanduser(d)


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # libraries take it from here to show progress; nothing of this runtime needs it
        return importlib.import_module("tqdm").tqdm
    raise AttributeError(f"module 'torch.hub' has no attribute '{name}'")
