"""`torch.hub`: nothing is downloaded by this runtime."""

from __future__ import annotations

import os

from ._absent import refusing

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
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.join(os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))), "hub")


def set_dir(d: str) -> None:
    """Set what `get_dir` returns."""
    _Place.directory = os.path.expanduser(d)
